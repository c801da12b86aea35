// Many processes, threads or descriptors, to see what finding a pipeline among them costs: many KIND COUNT
//
// sleepers: child processes that only sleep. children: child processes that write to standard output now and then.
// pipes: child processes that inherit a pipe for each of them, and write to their own; the parent reads all.
// threads and descriptors: this process has so many, or with its children, and passes its input on. prefork: child
// processes that wait for connections to one socket; one of them writes a line to standard output for each. leader: the
// first thread ends, and another one passes the input on.
//
// read: reads the states and descriptors of all processes once, and prints the seconds that takes.
//
// All children end with this process.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

// Starts `count` children that call `act` with their number, and do so until they are killed.
static void start(long count, void (*act)(long)) {
    for (long n = 0; n < count; n++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("fork");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            act(n);
            _exit(0);
        }
    }
}

static void sleep_on(long n) {
    (void)n;
    for (;;)
        pause();
}

static void write_now_and_then(long n) {
    char line[64];
    int length = snprintf(line, sizeof line, "%ld\n", n);
    for (;;) {
        if (write(1, line, length) < 0)
            _exit(1);
        usleep(200000);
    }
}

static int (*ends)[2];

static void write_to_own_pipe(long n) {
    for (;;) {
        if (write(ends[n][1], "x\n", 2) < 0)
            _exit(1);
        usleep(200000);
    }
}

static int listener;

static void serve(long n) {
    (void)n;
    for (;;) {
        int fd = accept(listener, 0, 0);
        if (fd < 0 || write(1, "served\n", 7) < 0)
            _exit(1);
        close(fd);
    }
}

static void *pass_on(void *unused) {
    static char buffer[65536];
    (void)unused;
    for (;;) {
        ssize_t got = read(0, buffer, sizeof buffer);
        if (got <= 0 || write(1, buffer, got) < 0)
            exit(0);
    }
}

static void *wait_forever(void *unused) {
    for (;;)
        pause();
    return unused;
}

static void start_threads(long count, void *(*act)(void *)) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (long n = 0; n < count; n++)
        if (pthread_create(&thread, &attributes, act, 0))
            fail("pthread_create");
}

// Reads the states and the descriptors of all processes, as plainly as possible. Returns the seconds that takes.
static double read_all(void) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    DIR *all = opendir("/proc");
    if (!all)
        fail("/proc");
    char path[300], text[4096];
    for (struct dirent *process; (process = readdir(all));) {
        if (process->d_name[0] < '0' || process->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", process->d_name);
        int stat = open(path, O_RDONLY);
        if (stat < 0)
            continue;
        ssize_t got = read(stat, text, sizeof text);
        close(stat);
        snprintf(path, sizeof path, "/proc/%s/fd", process->d_name);
        DIR *descriptors = opendir(path);
        if (got < 0 || !descriptors)
            continue;
        for (struct dirent *descriptor; (descriptor = readdir(descriptors));)
            if (descriptor->d_name[0] != '.' &&
                readlinkat(dirfd(descriptors), descriptor->d_name, text, sizeof text) < 0)
                break;
        closedir(descriptors);
    }
    closedir(all);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const char *kind = argv[1];
    long count = atol(argv[2]);
    struct rlimit limit;
    if (!strcmp(kind, "read")) {
        printf("%f\n", read_all());
        return 0;
    } else if (!strcmp(kind, "sleepers")) {
        start(count, sleep_on);
        printf("ready\n");
        fflush(stdout);
        sleep_on(0);
    } else if (!strcmp(kind, "children")) {
        start(count, write_now_and_then);
        sleep_on(0);
    } else if (!strcmp(kind, "pipes")) {
        ends = calloc(count, sizeof *ends);
        struct pollfd *polled = calloc(count, sizeof *polled);
        for (long n = 0; n < count; n++) {
            if (pipe(ends[n]))
                fail("pipe");
            polled[n] = (struct pollfd){ends[n][0], POLLIN, 0};
        }
        start(count, write_to_own_pipe);
        for (long n = 0; n < count; n++)
            close(ends[n][1]);
        static char buffer[4096];
        for (;;) {
            poll(polled, count, -1);
            for (long n = 0; n < count; n++)
                if (polled[n].revents) {
                    ssize_t got = read(polled[n].fd, buffer, sizeof buffer);
                    if (got > 0 && write(1, buffer, got) < 0)
                        return 1;
                }
        }
    } else if (!strcmp(kind, "threads")) {
        start_threads(count, wait_forever);
        pass_on(0);
    } else if (!strcmp(kind, "leader")) {
        start_threads(count, pass_on);
        pthread_exit(0);
    } else if (!strcmp(kind, "descriptors")) {
        // If a process may not have as many, child processes have the rest: they inherit all of them.
        getrlimit(RLIMIT_NOFILE, &limit);
        long most = (long)limit.rlim_cur - 16, opened = count < most ? count : most;
        for (long n = 0; n < opened; n++)
            if (open("/dev/null", O_RDONLY) < 0)
                fail("open");
        start((count + opened - 1) / opened - 1, sleep_on);
        pass_on(0);
    } else if (!strcmp(kind, "prefork")) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 128) ||
            getsockname(listener, (struct sockaddr *)&address, &length))
            fail("listen");
        start(count, serve);
        for (;;) {
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(fd, (struct sockaddr *)&address, length))
                fail("connect");
            close(fd);
            usleep(2000);
        }
    }
    return 2;
}
