/* The reference for pipemark: a minimal source and sink on one pipe.
 *
 *   pair BLOCK CAPACITY SOURCE_CPU SINK_CPU MILLISECONDS
 *
 * Prints the bytes per second that arrived. CAPACITY 0 leaves the pipe as it is; a CPU of -1 doesn't pin that end.
 * The sink measures, after 5 ms of reading, until the time is over. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void pin(int cpu) {
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        fail("sched_setaffinity");
}

static int64_t now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    int fd[2];

    if (argc != 6) {
        fprintf(stderr, "usage: pair BLOCK CAPACITY SOURCE_CPU SINK_CPU MILLISECONDS\n");
        return 2;
    }
    size_t block = strtoul(argv[1], NULL, 10);
    int capacity = atoi(argv[2]);
    int64_t window = atoll(argv[5]) * 1000000;
    char *buffer = aligned_alloc(4096, (block + 4095) & ~4095ul);

    if (!buffer || !block)
        fail("block");
    memset(buffer, 'A', block);
    if (pipe(fd))
        fail("pipe");
    if (capacity && fcntl(fd[1], F_SETPIPE_SZ, capacity) < 0)
        fail("F_SETPIPE_SZ");
    pid_t child = fork();

    if (child < 0)
        fail("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fd[0]);
        pin(atoi(argv[3]));
        memset(buffer, 'B', block);
        while (write(fd[1], buffer, block) > 0)
            ;
        _exit(0);
    }
    close(fd[1]);
    pin(atoi(argv[4]));
    int64_t begin = now(), end;
    int64_t bytes = 0;
    ssize_t got;
    unsigned int reads = 0;

    while (now() - begin < 5000000)
        if (read(fd[0], buffer, block) <= 0)
            fail("read");
    begin = now();
    do {
        got = read(fd[0], buffer, block);
        if (got <= 0)
            fail("read");
        bytes += got;
        /* Reading the clock costs more than a small read. */
        end = ++reads % 16 && block < 65536 ? begin : now();
    } while (end - begin < window);
    close(fd[0]);
    waitpid(child, NULL, 0);
    printf("%.0f\n", bytes * 1e9 / (end - begin));
    return 0;
}
