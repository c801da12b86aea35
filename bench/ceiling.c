/* What an end of a pipe could do if the transfer cost nothing, as a loop written by hand.
 *
 *   ceiling copy|make|check BLOCK MILLISECONDS
 *
 * Prints the bytes per second of one core that copies a block to another (copy), writes the words of pipemark's pattern
 * into a block (make; word i is seed + i * STEP), or compares each byte of a block with the expected one (check). For
 * make and check it is the fastest quarter of a millisecond, as in pipemark. A block is whole words. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP 0x9e3779b97f4a7c15ull
#if defined(__x86_64__)
#define WIDEST __attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDEST __attribute__((noinline))
#endif

static int64_t now(void) {
    struct timespec t;

    /* CPU time, as pipemark uses for an end alone, because others may use the CPU too. */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Four vectors at a time, each with its own sum, because a single sum would serialize the additions. */
typedef uint64_t vector __attribute__((vector_size(64), aligned(8), may_alias));
enum { LANES = 8, WORDS = 4 * LANES };

static inline __attribute__((always_inline)) void begin_at(vector *v, uint64_t first) {
    const vector steps = {0, STEP, 2 * STEP, 3 * STEP, 4 * STEP, 5 * STEP, 6 * STEP, 7 * STEP};

    for (int k = 0; k < 4; k++)
        v[k] = steps + (first + k * LANES * STEP);
}

WIDEST static void make(uint64_t *words, size_t count, uint64_t first) {
    vector v[4];
    size_t i = 0;

    begin_at(v, first);
    for (; i + WORDS <= count; i += WORDS)
        for (int k = 0; k < 4; k++)
            *(vector *)(words + i + k * LANES) = v[k], v[k] += WORDS * STEP;
    for (; i < count; i++)
        words[i] = first + i * STEP;
}

WIDEST static uint64_t check(const uint64_t *words, size_t count, uint64_t first) {
    vector v[4], off[4] = {{0}};
    uint64_t wrong = 0;
    size_t i = 0;

    begin_at(v, first);
    for (; i + WORDS <= count; i += WORDS)
        for (int k = 0; k < 4; k++)
            off[k] |= *(const vector *)(words + i + k * LANES) ^ v[k], v[k] += WORDS * STEP;
    off[0] |= off[1] | off[2] | off[3];
    for (int k = 0; k < LANES; k++)
        wrong |= off[0][k];
    for (; i < count; i++)
        wrong |= words[i] ^ (first + i * STEP);
    return wrong;
}

int main(int argc, char **argv) {
    size_t block = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;

    const char *const names[] = {"copy", "make", "check"};
    enum { COPY, MAKE, CHECK, UNKNOWN } what = block && block % 8 == 0 ? COPY : UNKNOWN;

    while (what < UNKNOWN && strcmp(argv[1], names[what]))
        what++;
    if (what == UNKNOWN) {
        fprintf(stderr, "usage: ceiling copy|make|check BLOCK MILLISECONDS\n");
        return 2;
    }
    size_t room = (block + 4095) & ~4095ul;
    unsigned char *from = aligned_alloc(4096, room), *to = aligned_alloc(4096, room);

    if (!from || !to) {
        perror("memory");
        return 1;
    }
    make((uint64_t *)from, block / 8, 0);
    memset(to, 0, room);
    int64_t window = atoll(argv[3]) * 1000000, begin = now(), end;
    int64_t mark = begin;
    uint64_t bytes = 0, marked = 0, wrong = 0, position = 0;
    double fastest = 0;

    do {
        /* Reading this clock is a system call. */
        for (size_t done = 0; done < (4 << 20); done += block, bytes += block) {
            if (what == COPY) {
                memcpy(to, from, block);
                __asm__ volatile("" : : "r"(to) : "memory");
            } else if (what == MAKE) {
                make((uint64_t *)to, block / 8, position / 8 * STEP);
                position += block;
                __asm__ volatile("" : : "r"(to) : "memory");
            } else {
                __asm__ volatile("" : : "r"(from) : "memory");
                __asm__ volatile("" : "+r"(position));
                wrong |= check((const uint64_t *)from, block / 8, position / 8 * STEP);
            }
        }
        end = now();
        if (end - mark >= 250000) {
            double speed = (bytes - marked) * 1e9 / (end - mark);

            fastest = speed > fastest ? speed : fastest;
            mark = end;
            marked = bytes;
        }
    } while (end - begin < window);
    if (wrong) {
        fprintf(stderr, "the block is not what was written\n");
        return 1;
    }
    printf("%.0f\n", what == COPY ? bytes * 1e9 / (end - begin) : fastest);
    return 0;
}
