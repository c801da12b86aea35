// A stage of a pipeline with a known cost: stage WAIT WORK MICROSECONDS [BLOCK [EVERY]]
//
// Reads blocks, works MICROSECONDS on each (or EVERY times as long on every EVERYth), and passes them on. WAIT is its
// way to wait for input: read, poll, select, epoll, splice, uring or threads. WORK is cpu, sleep, sync (writes to a
// file and waits for the disk) or none.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *how, *work;
static long micros, every = 1, block = 16384, count;
static int file = -1;

// With STAGE_CLOCKS set, the file clock-PID holds the nanoseconds that it worked, waited for input and waited for room.
// CPU time inside a call, such as a copy, counts as work.
static struct {
    int64_t spent[3];
    uint64_t since, doing;
} *clocks;

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void now_doing(int next) {
    static uint64_t computed;
    if (!clocks)
        return;
    uint64_t cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID), now = nanoseconds(CLOCK_MONOTONIC);
    if (clocks->since) {
        clocks->spent[0] += cpu - computed;
        clocks->spent[clocks->doing] += now - clocks->since - (cpu - computed);
    }
    clocks->since = now, clocks->doing = next, computed = cpu;
}

static void clocks_open(void) {
    char name[32];
    snprintf(name, sizeof name, "clock-%d", getpid());
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, 4096))
        exit(1);
    clocks = mmap(0, 4096, 3, MAP_SHARED, fd, 0);
}

static double cpu_now(void) { return nanoseconds(CLOCK_THREAD_CPUTIME_ID) / 1e3; }

static void do_work(char *data) {
    if (++count % every)
        return;
    long cost = micros * every;
    if (!strcmp(work, "cpu")) {
        for (double end = cpu_now() + cost; cpu_now() < end;)
            ;
    } else if (!strcmp(work, "sleep")) {
        struct timespec t = {cost / 1000000, cost % 1000000 * 1000};
        nanosleep(&t, NULL);
    } else if (!strcmp(work, "sync")) {
        if (pwrite(file, data, 4096, 0) < 0 || fdatasync(file))
            exit(1);
    }
}

static struct {
    int fd;
    unsigned *head, *tail, *mask, *array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
} ring;

static void ring_open(void) {
    struct io_uring_params p = {0};
    ring.fd = syscall(SYS_io_uring_setup, 4, &p);
    if (ring.fd < 0)
        exit(77);
    char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, 3, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    char *cq = mmap(0, p.cq_off.cqes + p.cq_entries * 16, 3, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(0, p.sq_entries * 64, 3, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
    ring.head = (void *)(sq + p.sq_off.head), ring.tail = (void *)(sq + p.sq_off.tail);
    ring.mask = (void *)(sq + p.sq_off.ring_mask), ring.array = (void *)(sq + p.sq_off.array);
    ring.cq_head = (void *)(cq + p.cq_off.head), ring.cq_tail = (void *)(cq + p.cq_off.tail);
    ring.cq_mask = (void *)(cq + p.cq_off.ring_mask), ring.done = (void *)(cq + p.cq_off.cqes);
}

static long ring_move(int op, int fd, char *data, long size) {
    unsigned tail = *ring.tail, at = tail & *ring.mask;
    ring.entries[at] = (struct io_uring_sqe){.opcode = op, .fd = fd, .addr = (uintptr_t)data, .len = size, .off = -1};
    ring.array[at] = at;
    __atomic_store_n(ring.tail, tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        exit(1);
    unsigned head = *ring.cq_head;
    long result = ring.done[head & *ring.cq_mask].res;
    __atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
    return result;
}

static int epoll_fd = -1;

static void wait_for(int fd, int out) {
    if (!strcmp(how, "poll")) {
        struct pollfd p = {fd, out ? POLLOUT : POLLIN, 0};
        poll(&p, 1, -1);
    } else if (!strcmp(how, "select")) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fd, &set);
        select(fd + 1, out ? NULL : &set, out ? &set : NULL, NULL, NULL);
    } else if (!strcmp(how, "epoll")) {
        struct epoll_event e = {.events = out ? EPOLLOUT : EPOLLIN, .data.fd = fd};
        if (epoll_fd < 0)
            epoll_fd = epoll_create1(0);
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0) {
            epoll_wait(epoll_fd, &e, 1, -1);
            epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        }
    }
}

static long take(char *data, long size) {
    now_doing(1);
    if (strcmp(how, "uring"))
        wait_for(0, 0);
    long got = strcmp(how, "uring") ? read(0, data, size) : ring_move(IORING_OP_READ, 0, data, size);
    now_doing(0);
    return got;
}

static void give(char *data, long size) {
    now_doing(2);
    while (size > 0) {
        long done;
        if (!strcmp(how, "uring")) {
            done = ring_move(IORING_OP_WRITE, 1, data, size);
        } else {
            // Writes no more than is sure to fit, as programs do that wait before they write.
            int waits = strcmp(how, "read") && strcmp(how, "threads");
            wait_for(1, 1);
            done = write(1, data, waits && size > 4096 ? 4096 : size);
        }
        if (done <= 0)
            exit(0);
        data += done, size -= done;
    }
    now_doing(0);
}

static void *loop(void *unused) {
    char *data = malloc(block);
    for (;;) {
        long got = 0;
        while (got < block) {
            long now = take(data + got, block - got);
            if (now <= 0)
                exit(0);
            got += now;
        }
        do_work(data);
        give(data, got);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    how = argv[1], work = argv[2], micros = atol(argv[3]);
    prctl(PR_SET_TIMERSLACK, 1);
    if (argc > 4)
        block = atol(argv[4]);
    if (argc > 5)
        every = atol(argv[5]);
    if (!strcmp(work, "sync")) {
        char name[] = "./stage-XXXXXX";
        file = mkstemp(name);
        unlink(name);
    }
    if (!strcmp(how, "uring"))
        ring_open();
    if (getenv("STAGE_CLOCKS") && strcmp(how, "threads") && strcmp(how, "splice"))
        clocks_open();
    if (!strcmp(how, "splice")) {
        for (;;) {
            long got = 0;
            while (got < block) {
                long now = splice(0, NULL, 1, NULL, block - got, 0);
                if (now <= 0)
                    return 0;
                got += now;
            }
            do_work(NULL);
        }
    }
    if (!strcmp(how, "threads")) {
        pthread_t other;
        pthread_create(&other, NULL, loop, NULL);
    }
    loop(NULL);
}
