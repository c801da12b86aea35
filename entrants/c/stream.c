#include "stream.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const size_t page = 4096;
static const size_t stamp_size = 8;

void die(const char *what) { err(EXIT_FAILURE, "%s", what); }

static uint64_t parse_number(const char *name, const char *text, uint64_t max) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value > max)
        errx(2, "--%s must be a whole number up to %" PRIu64 ", not \"%s\"", name, max, text);
    return value;
}

struct options options_parse(int argc, char **argv) {
    static const struct option known[] = {
        {"bytes", required_argument, NULL, 'n'},   {"block", required_argument, NULL, 'b'},
        {"pattern", required_argument, NULL, 'p'}, {"seed", required_argument, NULL, 's'},
        {"flip", required_argument, NULL, 'f'},    {NULL, 0, NULL, 0},
    };
    struct options options = {.pattern = PATTERN_POSITION, .flip = UINT64_MAX};
    bool has_bytes = false;
    int name;
    while ((name = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (name) {
        case 'n':
            options.bytes = parse_number("bytes", optarg, INT64_MAX);
            has_bytes = true;
            break;
        case 'b':
            options.block = parse_number("block", optarg, 1u << 30);
            break;
        case 'p':
            if (strcmp(optarg, "document") == 0)
                options.pattern = PATTERN_DOCUMENT;
            else if (strcmp(optarg, "position") != 0)
                errx(2, "--pattern must be position or document, not \"%s\"", optarg);
            break;
        case 's':
            options.seed = parse_number("seed", optarg, UINT32_MAX);
            break;
        case 'f':
            options.flip = parse_number("flip", optarg, INT64_MAX);
            break;
        default:
            exit(2);
        }
    }
    if (!has_bytes || options.block == 0)
        errx(2, "--bytes and a --block of at least 1 are needed");
    return options;
}

struct source source_open(const struct options *options) {
    size_t size = (options->block + page - 1) / page * page;
    struct source source = {.options = options, .block = aligned_alloc(page, size)};
    if (source.block == NULL)
        die("cannot allocate a block");
    uint32_t x = options->seed;
    for (size_t i = 0; i < options->block; i++) {
        x = x * 1664525u + 1013904223u;
        source.block[i] = options->pattern == PATTERN_DOCUMENT ? i & 0xff : x >> 24;
    }
    return source;
}

const unsigned char *source_block(struct source *source, uint64_t number, size_t length) {
    const struct options *options = source->options;
    if (source->flipped != NULL) {
        *source->flipped ^= 0xff;
        source->flipped = NULL;
    }
    if (options->pattern == PATTERN_POSITION) {
        for (size_t i = 0; i < stamp_size && i < length; i++)
            source->block[i] = number >> (8 * i);
    }
    if (options->flip / options->block == number && options->flip % options->block < length) {
        source->flipped = source->block + options->flip % options->block;
        *source->flipped ^= 0xff;
    }
    return source->block;
}

void source_close(struct source *source) { free(source->block); }

int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void report(const char *runtime, const struct answer *answer, int64_t ns, int capacity) {
    printf("{\"language\":\"C\",\"runtime\":\"%s\",\"bytes\":%" PRIu64 ",\"ns\":%" PRId64 ",\"checksum\":\"%016" PRIx64
           "\",\"capacity\":%d}\n",
           runtime, answer->bytes, ns, answer->checksum, capacity);
    if (fflush(stdout) != 0)
        die("cannot write the result");
}
