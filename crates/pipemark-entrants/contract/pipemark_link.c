/* The part of pipemark_link.h that is not in the loops of an end: the assignment, the clock, faults and the report. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pipemark_link.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#if defined(__x86_64__) && defined(__GLIBC__)
#define WIDEST_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST_VECTORS
#endif

/* Times are counted in buckets: one for each of the first 2048 ns, then 1024 for each further bit. */
enum { EXACT_BITS = 11, BUCKETS = 54 << 10 };

struct pm_faults {
    char kind[16];
    uint64_t at;
};
struct pm_window {
    uint64_t begun_ns, ended_ns, bytes, calls;
    struct rusage before, after;
    int cpus[2];
    double ceiling;
    uint64_t wrong, found; /* 1 + the number of the first wrong block, and of the block in its place */
    uint64_t size;         /* 1 + the size of the message in its place, if that isn't a block's */
    unsigned ended_senders;
};
struct pm_channel {
    FILE *in, *out;
    char options[1024];
};

void pm_fail(const char *what) {
    if (errno != 0)
        perror(what);
    else
        fprintf(stderr, "%s\n", what);
    exit(1);
}

uint64_t pm_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

WIDEST_VECTORS void pm_fill_words(uint64_t word, unsigned char *to, size_t words) {
    for (size_t i = 0; i < words; i++, word += PM_STEP)
        memcpy(to + 8 * i, &word, 8);
}

WIDEST_VECTORS bool pm_equal_words(uint64_t word, const unsigned char *from, size_t words) {
    uint64_t difference = 0;
    for (size_t i = 0; i < words; i++, word += PM_STEP) {
        uint64_t one;
        memcpy(&one, from + 8 * i, 8);
        difference |= one ^ word;
    }
    return difference == 0;
}

void pm_window_edge(struct pm_link *link, uint64_t now, bool begins) {
    struct pm_window *window = link->window;
    getrusage(RUSAGE_SELF, begins ? &window->before : &window->after);
    window->cpus[!begins] = sched_getcpu();
    if (begins) {
        window->begun_ns = now, window->bytes = link->moved, window->calls = link->calls;
        link->begun = true, link->polled = 0;
    } else {
        window->ended_ns = now, window->bytes = link->moved - window->bytes;
        window->calls = link->calls - window->calls;
        link->ended = true;
    }
}

/* The block that ends a stream of messages. */
unsigned char *pm_last(struct pm_link *link, unsigned char *to) {
    link->over = true;
    if (!link->messages || link->null)
        return NULL;
    link->last = true;
    pm_fill(link, pm_seed(link, true, link->index) + PM_END, 0, to);
    return to;
}

void pm_make_faulty(struct pm_link *link, unsigned char *block, uint64_t n) {
    uint64_t seed = pm_seed(link, true, link->index), at = link->faults->at, other = n;
    const char *kind = link->faults->kind;
    if (strcmp(kind, "flip") == 0 && n == at)
        block[link->block / 2] ^= 1;
    if (strcmp(kind, "drop") == 0 && n >= at)
        other = n + 1, link->sent += n == at;
    if (strcmp(kind, "repeat") == 0 && n > at)
        other = n - 1, link->sent -= n == at + 1;
    if (strcmp(kind, "reorder") == 0 && (n == at || n == at + 1))
        other = 2 * at + 1 - n;
    if (other != n)
        pm_fill(link, seed, link->fresh ? other : 0, block);
}

/* Waits until a round trip may start. At a fixed rate, its time counts from when it is due. */
void pm_wait_until_due(struct pm_link *link) {
    uint64_t now = pm_now(), wait = link->gap;
    if (link->interval != 0 && link->begun) {
        uint64_t due = link->window->begun_ns + link->interval * ++link->due / 1000;
        wait = due > now + 100000 ? due - now - 100000 : 0; /* the rest is spent polling the clock */
        link->started = due;
    }
    if (wait > 0)
        clock_nanosleep(CLOCK_MONOTONIC, 0,
                        &(struct timespec){(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)}, NULL);
    if (link->interval != 0 && link->begun) {
        uint64_t polled_from = pm_now();
        for (now = polled_from; now < link->started;)
            now = pm_now();
        link->polled += now - polled_from;
    } else if (wait > 0 || link->started == 0) {
        link->started = pm_now(); /* otherwise the arrival of the reply before is the start */
    }
}

void pm_record_trip(struct pm_link *link, uint64_t arrived) {
    uint64_t trip = arrived > link->started ? arrived - link->started : 1;
    unsigned shift = trip >> EXACT_BITS == 0 ? 0 : 64 - EXACT_BITS - (unsigned)__builtin_clzll(trip);
    if (link->trips != NULL && link->begun && !link->ended)
        link->trips[((uint64_t)shift << (EXACT_BITS - 1)) + (trip >> shift)]++;
    link->started = arrived;
}

/* With several senders, the first word of a message shows which of them sent it. */
unsigned pm_which_sender(const struct pm_link *link, const unsigned char *message, size_t length) {
    uint64_t first = 0;
    memcpy(&first, message, length < 8 ? length : 8);
    for (unsigned sender = 0; sender < link->senders; sender++) {
        uint64_t seed = pm_seed(link, true, sender);
        if (first == pm_first_word(link, seed, link->fresh ? link->seen[sender] : 0) || first == seed + PM_END)
            return sender;
    }
    return 0;
}

/* Judges a piece that isn't the expected one. False if it is the end of the stream. */
bool pm_unexpected(struct pm_link *link, const unsigned char *piece, size_t length, unsigned sender) {
    struct pm_window *window = link->window;
    uint64_t seed = pm_seed(link, !link->sender, sender), expected = link->seen[sender];
    uint64_t first = 0, words = (link->block + 7) / 8;
    memcpy(&first, piece, length < 8 ? length : 8);
    uint64_t index = (first - seed) * PM_STEP_INVERSE, n = index / words;
    bool whole = length == link->block && link->offset == 0;
    bool is_block = whole && index % words == 0 && index < PM_END && pm_matches(link, seed, n, 0, piece, length);
    if (whole && link->messages && pm_matches(link, seed + PM_END, 0, 0, piece, length)) {
        if (++window->ended_senders < link->senders)
            return link->received -= length, link->moved -= length, link->seen[sender]--, true;
        return false;
    }
    if (window->wrong == 0) {
        window->wrong = expected + 1;
        window->found = is_block ? n + 1 : 0;
    }
    return true;
}

/* Notes the first message that isn't one block. */
void pm_wrong_size(struct pm_link *link, size_t length, unsigned sender) {
    if (link->window->wrong == 0)
        link->window->wrong = link->seen[sender] + 1, link->window->size = length + 1;
}

const char *pm_option(const struct pm_link *link, const char *name, const char *otherwise) {
    size_t length = strlen(name);
    for (const char *at = link->channel->options; *at != '\0'; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == ' ')
            return at + length + 1;
    return otherwise;
}

static void *allocate(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, bytes) != 0)
        pm_fail("no memory");
    return memset(memory, 0, bytes);
}

static FILE *open_pipe(const char *role, const char *which, const char *mode) {
    char path[600];
    const char *directory = getenv("PIPEMARK_LINK");
    if (directory == NULL || role == NULL)
        errno = 0, pm_fail("this program is one end of a link; run it with pipemark bw --link NAME");
    snprintf(path, sizeof path, "%s/%s.%s", directory, role, which);
    FILE *file = fopen(path, mode);
    return file != NULL ? file : (pm_fail(path), NULL);
}

void pm_start(struct pm_link *link, const char *role) {
    static uint64_t unseen;
    char line[700], key[32], text[600];
    size_t used = 0;
    role = role != NULL ? role : getenv("PIPEMARK_ROLE");
    memset(link, 0, sizeof *link);
    struct pm_channel *channel = link->channel = allocate(sizeof *channel);
    link->window = allocate(sizeof *link->window);
    link->senders = link->receivers = 1, link->progress = &unseen;
    channel->in = open_pipe(role, "in", "re"), channel->out = open_pipe(role, "out", "we");
    while (fgets(line, sizeof line, channel->in) != NULL && sscanf(line, "%31s %599[^\n]", key, text) == 2) {
        uint64_t number = strtoull(text, NULL, 10);
#define IS(name) (strcmp(key, name) == 0)
        if (IS("role"))
            link->sender = strcmp(text, "sender") == 0;
        else if (IS("mode"))
            link->round_trips = strcmp(text, "round-trips") == 0;
        else if (IS("block"))
            link->block = number;
        else if (IS("seed"))
            link->seed = number;
        else if (IS("index"))
            link->index = (unsigned)number;
        else if (IS("senders"))
            link->senders = (unsigned)number;
        else if (IS("receivers"))
            link->receivers = (unsigned)number;
        else if (IS("content"))
            link->fresh = strcmp(text, "fresh") == 0;
        else if (IS("check"))
            link->check = strcmp(text, "all") == 0;
        else if (IS("boundaries"))
            link->messages = strcmp(text, "kept") == 0;
        else if (IS("transfer"))
            link->null = strcmp(text, "none") == 0;
        else if (IS("interval"))
            link->interval = number; /* in picoseconds */
        else if (IS("gap"))
            link->gap = number;
        else if (IS("cpu")) {
            cpu_set_t cpus;
            CPU_ZERO(&cpus);
            CPU_SET(number, &cpus);
            if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
                pm_fail("the CPU is not allowed");
        } else if (IS("wait"))
            snprintf(link->wait, sizeof link->wait, "%.7s", text);
        else if (IS("directory"))
            snprintf(link->directory, sizeof link->directory, "%.255s", text);
        else if (IS("name"))
            snprintf(link->name, sizeof link->name, "%.63s", text);
        else if (IS("option") && used + strlen(text) + 2 < sizeof channel->options)
            used += (size_t)sprintf(channel->options + used, "%s", text) + 1;
        else if (IS("fault") && (link->faults = allocate(sizeof *link->faults)) != NULL)
            sscanf(text, "%15s %lu", link->faults->kind, (unsigned long *)&link->faults->at);
        else if (IS("progress")) {
            char *place = strchr(text, ' ');
            *place++ = '\0';
            int page = open(text, O_RDWR | O_CLOEXEC);
            void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
            if (mapped != MAP_FAILED)
                link->progress = (uint64_t *)mapped + strtoul(place, NULL, 10) / 8;
        }
    }
    if (link->block == 0 || link->senders > PM_SENDERS)
        errno = 0, pm_fail("the assignment is incomplete");
}

void pm_bound(struct pm_link *link) { fputs("bound\n", link->channel->out), fflush(link->channel->out); }

/* The bytes per second that this end can make, or check, without a transfer. */
static double ceiling(struct pm_link *link) {
    double best = 0;
    for (int batch = 0; batch < 4; batch++) {
        uint64_t begin = pm_now(), rounds = 0, spent;
        do {
            for (int i = 0; i < 8; i++, rounds++)
                link->sender ? (void)pm_next(link, NULL) : (void)pm_received(link, link->buffer, link->block);
            spent = pm_now() - begin;
        } while (spent < 500000);
        double rate = (double)rounds * (double)link->block * 1e9 / (double)spent;
        best = rate > best ? rate : best;
    }
    return best;
}

void pm_ready(struct pm_link *link) {
    struct pm_channel *channel = link->channel;
    link->buffer = allocate(link->block + 8);
    if (link->round_trips)
        link->trips = allocate(BUCKETS * sizeof *link->trips);
    pm_fill(link, pm_seed(link, link->sender, link->index), 0, link->buffer);
    if (link->fresh && !link->round_trips) {
        struct pm_link trial = *link;
        trial.null = true, trial.begun = true, trial.until = UINT64_MAX, trial.senders = 1, trial.faults = NULL;
        pm_fill(link, pm_seed(link, true, 0), 0, link->buffer);
        link->window->ceiling = ceiling(&trial);
    }
    fputs("ready\n", channel->out), fflush(channel->out);
    char go[100];
    if (fgets(go, sizeof go, channel->in) == NULL ||
        sscanf(go, "go %lu %lu", (unsigned long *)&link->from, (unsigned long *)&link->until) != 2)
        exit(1); /* pipemark has ended, or another end failed */
}

static uint64_t ns(struct timeval time) { return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u; }

/* The largest size of this program so far, in bytes. ru_maxrss also counts the program that started it. */
static unsigned long peak_memory(void) {
    char line[100];
    unsigned long kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && kib == 0 && fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmHWM: %lu", &kib);
    if (status != NULL)
        fclose(status);
    return kib * 1024;
}

void pm_done(struct pm_link *link) {
    struct pm_window *window = link->window;
    FILE *out = link->channel->out;
    if (link->begun && !link->ended)
        pm_window_edge(link, pm_now(), false);
    struct rusage *before = &window->before, *after = &window->after;
    uint64_t polled = link->polled, user = ns(after->ru_utime) - ns(before->ru_utime);
#define REPORT(key, value) fprintf(out, key " %lu\n", (unsigned long)(value))
    REPORT("sent", link->sent), REPORT("received", link->received), REPORT("written", link->written);
    REPORT("checked", link->checked), REPORT("wrong", window->wrong), REPORT("found", window->found);
    REPORT("size", window->size);
    REPORT("bytes", link->ended ? window->bytes : 0), REPORT("ns", window->ended_ns - window->begun_ns);
    REPORT("calls", link->ended ? window->calls : 0);
    REPORT("user-ns", user > polled ? user - polled : 0),
        REPORT("system-ns", ns(after->ru_stime) - ns(before->ru_stime));
    REPORT("voluntary", after->ru_nvcsw - before->ru_nvcsw),
        REPORT("involuntary", after->ru_nivcsw - before->ru_nivcsw);
    REPORT("minor-faults", after->ru_minflt - before->ru_minflt);
    REPORT("major-faults", after->ru_majflt - before->ru_majflt), REPORT("max-rss", peak_memory());
    REPORT("cpu", window->cpus[0]), REPORT("cpu", window->cpus[1]);
    if (link->interval != 0)
        REPORT("due", (window->ended_ns - window->begun_ns) * 1000 / link->interval);
    if (window->ceiling > 0)
        fprintf(out, "ceiling %.0f\n", window->ceiling);
    for (uint64_t i = 0; link->trips != NULL && i < BUCKETS; i++)
        if (link->trips[i] > 0) {
            unsigned shift = i < 1u << EXACT_BITS ? 0 : (unsigned)(i >> (EXACT_BITS - 1)) - 1;
            uint64_t low = (i - ((uint64_t)shift << (EXACT_BITS - 1))) << shift;
            fprintf(out, "trip %lu %lu\n", (unsigned long)(low + (UINT64_C(1) << shift) / 2),
                    (unsigned long)link->trips[i]);
        }
    fputs("end\n", out), fflush(out);
    char finish[16]; /* a library may lose what it has not sent yet when it is closed, so no end closes before */
    if (fgets(finish, sizeof finish, link->channel->in) == NULL)
        exit(1);
}

/* For languages that load this file as a library. */
struct pm_link *pm_new(const char *role) {
    struct pm_link *link = allocate(sizeof *link);
    pm_start(link, role);
    return link;
}

unsigned char *pm_next_block(struct pm_link *link, void *room) { return pm_next(link, room); }

bool pm_check(struct pm_link *link, const void *data, size_t length) { return pm_received(link, data, length); }
