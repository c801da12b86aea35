/* Shared by both programs: the options, the bytes to send, and the answer.
 * Each program moves and sums bytes in its own way. See ../README.md. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_START 1u
#define CHECKSUM_FACTOR 0x9E3779B97F4A7C15u

enum pattern { PATTERN_POSITION, PATTERN_DOCUMENT };

struct options {
    uint64_t bytes;
    size_t block;
    enum pattern pattern;
    uint32_t seed;
    uint64_t flip; /* offset of the byte to invert; UINT64_MAX for none */
};

/* The blocks in the order in which they are sent. */
struct source {
    const struct options *options;
    unsigned char *block;
    unsigned char *flipped; /* the byte to restore before the next block */
};

/* The child's result. */
struct answer {
    uint64_t bytes;
    uint64_t checksum;
};

struct options options_parse(int argc, char **argv);
struct source source_open(const struct options *options);
/* Block `number` of the stream, valid until the next call. The first `length` bytes of the block are sent. */
const unsigned char *source_block(struct source *source, uint64_t number, size_t length);
void source_close(struct source *source);

/* The compiler that compiled the program. */
#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* The monotonic clock in nanoseconds. */
int64_t now_ns(void);
/* Prints the result line that the contract requires. The capacity is in bytes. */
void report(const char *runtime, const struct answer *answer, int64_t ns, int capacity);
/* Prints `what` with the reason from errno, and ends the process with status 1. */
_Noreturn void die(const char *what);

#endif
