/* Starts a command many times and waits for each; prints the median in nanoseconds. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int ascending(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

int main(int count, char **words) {
    int runs = count > 2 ? atoi(words[1]) : 0;
    if (runs < 1) {
        fprintf(stderr, "usage: start RUNS COMMAND...\n");
        return 2;
    }
    uint64_t *times = calloc((size_t)runs, sizeof *times);
    for (int run = 0; run < runs; run++) {
        uint64_t begin = now();
        pid_t child;
        int status;
        if (posix_spawnp(&child, words[2], NULL, NULL, words + 2, environ) != 0 || waitpid(child, &status, 0) < 0 ||
            status != 0) {
            perror(words[2]);
            return 1;
        }
        times[run] = now() - begin;
    }
    qsort(times, (size_t)runs, sizeof *times, ascending);
    printf("%llu\n", (unsigned long long)times[runs / 2]);
    return 0;
}
