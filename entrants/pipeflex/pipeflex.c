/* pipeflex, rewritten from the description in "Pipe performance results" (docs/sources.md), with its options: pairs of
 * a writer and a reader, each pair with its own pipe, move bytes for a number of seconds. A reader works after each read,
 * a writer before each write. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CHILDREN = 256, MAX_TOKEN = 1 << 30 };

static struct {
    int children;
    double seconds;
    long read_work_us, write_work_us;
    size_t read_token, write_token;
    int output, mode;
} options = {.children = 2, .seconds = 20, .read_token = 4096, .write_token = 4096};

/* The bytes that each reader has read, shared with the parent. */
static volatile uint64_t *counts;

static void usage(void) {
    fputs("usage: pipeflex [-c CHILDREN] [-t SECONDS] [-x US] [-y US] [-r BYTES] [-w BYTES] [-o 0|2] [-m 0|1]\n"
          "  -c  number of children, in pairs of a writer and a reader [2]\n"
          "  -t  duration in seconds [20]\n"
          "  -x  work after each read, in microseconds: a random time from half to one and a half of it [0]\n"
          "  -y  work before each write, likewise [0]\n"
          "  -r  bytes per read [4096]\n"
          "  -w  bytes per write [4096]\n"
          "  -o  output: 0 in words, 2 for scripts [0]\n"
          "  -m  mode: 0 blocking descriptors, 1 nonblocking descriptors and poll [0]\n",
          stderr);
    exit(2);
}

static double number(const char *text, double least, double most) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= least && value <= most))
        usage();
    return value;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Computes for a random time from half of `mean_us` to one and a half. */
static void work(long mean_us, unsigned *seed) {
    if (mean_us == 0)
        return;
    int64_t until = now_ns() + (int64_t)(mean_us * 1000.0 * (0.5 + rand_r(seed) / (double)RAND_MAX));
    while (now_ns() < until)
        continue;
}

static void wait_for(int fd, short event) {
    struct pollfd one = {.fd = fd, .events = event};
    if (poll(&one, 1, -1) < 0 && errno != EINTR)
        err(1, "poll");
}

static unsigned char *buffer_of(size_t bytes) {
    unsigned char *buffer = calloc(bytes, 1);
    if (buffer == NULL)
        err(1, "cannot allocate a buffer");
    return buffer;
}

static void write_tokens(int fd) {
    unsigned seed = getpid();
    unsigned char *token = buffer_of(options.write_token);
    for (;;) {
        work(options.write_work_us, &seed);
        for (size_t done = 0; done < options.write_token;) {
            ssize_t n = write(fd, token + done, options.write_token - done);
            if (n >= 0)
                done += n;
            else if (errno == EAGAIN)
                wait_for(fd, POLLOUT);
            else if (errno != EINTR)
                err(1, "write");
        }
    }
}

static void read_tokens(int fd, volatile uint64_t *count) {
    unsigned seed = getpid();
    unsigned char *token = buffer_of(options.read_token);
    for (;;) {
        ssize_t n = read(fd, token, options.read_token);
        if (n > 0) {
            *count += n;
            work(options.read_work_us, &seed);
        } else if (n < 0 && errno == EAGAIN) {
            wait_for(fd, POLLIN);
        } else if (n == 0) {
            exit(0);
        } else if (errno != EINTR) {
            err(1, "read");
        }
    }
}

/* Starts the reader or the writer of a pair. */
static pid_t start(int pair, bool reads, const int fds[2]) {
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        exit(1);
    close(fds[reads ? 1 : 0]);
    if (reads)
        read_tokens(fds[0], &counts[pair]);
    else
        write_tokens(fds[1]);
    exit(0);
}

int main(int argc, char **argv) {
    for (int option; (option = getopt(argc, argv, "c:t:x:y:r:w:o:m:")) != -1;) {
        switch (option) {
        case 'c': options.children = (int)number(optarg, 2, MAX_CHILDREN); break;
        case 't': options.seconds = number(optarg, 0.001, 3600); break;
        case 'x': options.read_work_us = (long)number(optarg, 0, 1e6); break;
        case 'y': options.write_work_us = (long)number(optarg, 0, 1e6); break;
        case 'r': options.read_token = (size_t)number(optarg, 1, MAX_TOKEN); break;
        case 'w': options.write_token = (size_t)number(optarg, 1, MAX_TOKEN); break;
        case 'o': options.output = (int)number(optarg, 0, 2); break;
        case 'm': options.mode = (int)number(optarg, 0, 1); break;
        default: usage();
        }
    }
    if (optind != argc || options.children % 2 != 0)
        usage();
    int pairs = options.children / 2;
    counts = mmap(NULL, pairs * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        err(1, "mmap");
    pid_t children[MAX_CHILDREN];
    int64_t begin = now_ns();
    for (int pair = 0; pair < pairs; pair++) {
        int fds[2];
        if (pipe2(fds, O_CLOEXEC | (options.mode == 1 ? O_NONBLOCK : 0)) < 0)
            err(1, "pipe2");
        children[2 * pair] = start(pair, true, fds);
        children[2 * pair + 1] = start(pair, false, fds);
        close(fds[0]);
        close(fds[1]);
    }
    struct timespec rest = {.tv_sec = (time_t)options.seconds,
                            .tv_nsec = (long)((options.seconds - (time_t)options.seconds) * 1e9)};
    while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
        continue;
    uint64_t bytes = 0;
    for (int pair = 0; pair < pairs; pair++)
        bytes += counts[pair];
    double seconds = (now_ns() - begin) / 1e9;
    for (int child = 0; child < options.children; child++)
        kill(children[child], SIGKILL);
    bool failed = false;
    for (int child = 0; child < options.children; child++) {
        int status;
        failed |= waitpid(children[child], &status, 0) < 0 || !WIFSIGNALED(status);
    }
    if (failed)
        errx(1, "a child ended early");
    if (options.output == 2)
        printf("%.6f MB/sec\n", bytes / seconds / 1e6);
    else
        printf("%d children, %.3f s, %zu bytes per read, %zu per write: %llu bytes, %.3f MB/sec\n", options.children,
               seconds, options.read_token, options.write_token, (unsigned long long)bytes, bytes / seconds / 1e6);
    return 0;
}
