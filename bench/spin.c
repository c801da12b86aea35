/* Computes a number of steps, and up to a share more at random: spin STEPS [SPREAD], where 0.2 is up to 20 % more. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
    double steps = count > 1 ? atof(words[1]) : 0, spread = count > 2 ? atof(words[2]) : 0;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t seed = (uint64_t)time.tv_nsec * 2654435761u ^ (uint64_t)getpid() << 32;
    seed = (seed ^ seed >> 33) * 0xff51afd7ed558ccdu;
    seed ^= seed >> 33;
    steps *= 1 + spread * ((double)(seed >> 11) / 9007199254740992.0);
    volatile uint64_t state = 88172645463325252u;
    for (uint64_t step = 0; step < (uint64_t)steps; step++) {
        uint64_t next = state;
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        state = next;
    }
    return state == 0;
}
