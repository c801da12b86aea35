/* One end of a link that pipemark measures, for C and C++. Compile it with pipemark_link.c.
 * docs/outside-links.md describes the contract, of which this is version 1. */
#ifndef PIPEMARK_LINK_H
#define PIPEMARK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PM_STEP UINT64_C(0x9e3779b97f4a7c15)         /* between two words of the content */
#define PM_STEP_INVERSE UINT64_C(0xf1de83e19937733d) /* modulo 2^64 */
#define PM_END (UINT64_C(1) << 63)                   /* added to the seed for the block that ends a stream */

#define PM_SENDERS 16 /* at most */

/* The fields up to `name` are for adapters, the others for the functions below. */
struct pm_link {
    size_t block;        /* bytes of a block, which is one message */
    bool round_trips;    /* whether the receiver returns each block */
    bool sender;         /* whether this end is the sender, which starts each round trip */
    unsigned index;      /* the number of this sender or receiver, from 0 */
    bool last;           /* whether pm_next has returned the end of the stream, which gets no reply */
    unsigned senders;    /* the number of senders */
    unsigned receivers;  /* the number of receivers */
    char wait[8];        /* block, poll or spin */
    char directory[256]; /* for files and sockets */
    char name[64];       /* for objects with names elsewhere: unique, without a slash */

    bool fresh, check, messages, null, begun, ended, over;
    unsigned char *buffer;
    size_t offset;
    uint64_t seed, from, until;
    uint64_t given, seen[PM_SENDERS]; /* numbers of the next block: to send, and expected of each sender */
    uint64_t sent, received, written, checked, moved, calls;
    uint64_t since_clock, bytes_since_clock, started, interval, gap, due, polled;
    uint64_t *progress, *trips;
    struct pm_faults *faults;
    struct pm_window *window;
    struct pm_channel *channel;
};

/* Reads the assignment. `role` names the end in a program that is both ends, such as "receiver0"; otherwise it is NULL.
 */
void pm_start(struct pm_link *link, const char *role);
/* The value of an option of the link, or `otherwise`. */
const char *pm_option(const struct pm_link *link, const char *name, const char *otherwise);
/* Says that this end exists, so that the other may connect to it. For links of which one end has to be there first. */
void pm_bound(struct pm_link *link);
/* Says that this end is connected, and waits until all ends are. */
void pm_ready(struct pm_link *link);
/* Reports the results, and waits until all ends have. The sender of a byte stream closes its end before, so that the
 * receiver gets to the end of the stream; a sender of messages closes it afterwards. */
void pm_done(struct pm_link *link);
/* Ends the program with a message, to which the error in errno is added. */
void pm_fail(const char *what) __attribute__((noreturn));

/* pm_start with memory of its own, pm_next and pm_received, for languages that load this as a library. */
struct pm_link *pm_new(const char *role);
unsigned char *pm_next_block(struct pm_link *link, void *room);
bool pm_check(struct pm_link *link, const void *data, size_t length);

/* Used by the functions below. */
uint64_t pm_now(void);
void pm_window_edge(struct pm_link *link, uint64_t now, bool begins);
void pm_wait_until_due(struct pm_link *link);
unsigned char *pm_last(struct pm_link *link, unsigned char *to);
void pm_make_faulty(struct pm_link *link, unsigned char *block, uint64_t n);
unsigned pm_which_sender(const struct pm_link *link, const unsigned char *message, size_t length);
bool pm_unexpected(struct pm_link *link, const unsigned char *piece, size_t length, unsigned sender);
void pm_wrong_size(struct pm_link *link, size_t length, unsigned sender);
void pm_record_trip(struct pm_link *link, uint64_t arrived);
void pm_fill_words(uint64_t word, unsigned char *to, size_t words);
bool pm_equal_words(uint64_t word, const unsigned char *from, size_t words);

/* The first word of block `n`. Blocks begin with a whole word. */
static inline uint64_t pm_first_word(const struct pm_link *link, uint64_t seed, uint64_t n) {
    return seed + n * ((link->block + 7) / 8) * PM_STEP;
}

/* The seed of what a sender sends, or of what a receiver returns. */
static inline uint64_t pm_seed(const struct pm_link *link, bool from_sender, unsigned index) {
    return link->seed + ((uint64_t)index << 40) + (from_sender ? 0 : UINT64_C(1) << 32);
}

static inline void pm_fill(const struct pm_link *link, uint64_t seed, uint64_t n, unsigned char *to) {
    uint64_t word = pm_first_word(link, seed, n);
    pm_fill_words(word, to, link->block / 8);
    word += link->block / 8 * PM_STEP;
    __builtin_memcpy(to + link->block / 8 * 8, &word, link->block % 8);
}

/* Whether `length` bytes are those of block `n` from its byte `at` on. */
static inline bool pm_matches(const struct pm_link *link, uint64_t seed, uint64_t n, size_t at,
                              const unsigned char *from, size_t length) {
    uint64_t word = pm_first_word(link, seed, n) + at / 8 * PM_STEP;
    if (at % 8 != 0) {
        size_t head = length < 8 - at % 8 ? length : 8 - at % 8;
        if (__builtin_memcmp((const char *)&word + at % 8, from, head) != 0)
            return false;
        word += PM_STEP, from += head, length -= head;
    }
    if (!pm_equal_words(word, from, length / 8))
        return false;
    word += length / 8 * PM_STEP;
    return __builtin_memcmp(&word, from + length / 8 * 8, length % 8) == 0;
}

/* Counts bytes that were moved. For small pieces, the clock is not read at each call. */
static inline void pm_count(struct pm_link *link, size_t bytes, uint64_t now) {
    link->moved += bytes, link->calls++, link->bytes_since_clock += bytes;
    if (now == 0 && ++link->since_clock < 16 && link->bytes_since_clock < 65536)
        return;
    link->since_clock = link->bytes_since_clock = 0;
    *link->progress = link->moved;
    now = now != 0 ? now : pm_now();
    if (!link->begun && now >= link->from)
        pm_window_edge(link, now, true);
    else if (!link->ended && now >= link->until)
        pm_window_edge(link, now, false);
}

/* The next block to send, or to return in a round trip: in `room`, or in memory of the link if `room` is NULL. The
 * block before it has been sent. NULL once all have been sent. */
static inline unsigned char *pm_next(struct pm_link *link, void *room) {
    unsigned char *to = room != NULL ? (unsigned char *)room : link->buffer;
    if (link->over)
        return NULL;
    uint64_t seed = pm_seed(link, link->sender || link->null, link->index);
    uint64_t n = link->fresh && !link->null ? link->given : 0;
    if (link->sender && !link->round_trips && link->given > 0)
        pm_count(link, link->block, 0);
    if (link->sender && link->ended)
        return pm_last(link, to);
    link->given++, link->sent++;
    if (link->fresh || room != NULL || link->faults != NULL) {
        pm_fill(link, seed, n, to);
        link->written += link->fresh ? link->block : 0;
    }
    if (link->faults != NULL)
        pm_make_faulty(link, to, link->given - 1);
    if (link->sender && link->round_trips)
        pm_wait_until_due(link);
    return to;
}

/* Checks and counts what has arrived: a message, or any piece of a byte stream. False at the end of a stream of
 * messages. */
static inline bool pm_received(struct pm_link *link, const void *data, size_t length) {
    uint64_t now = link->sender && !link->null ? pm_now() : 0;
    const unsigned char *from = (const unsigned char *)data;
    unsigned sender = link->senders == 1 ? 0 : pm_which_sender(link, from, length);
    uint64_t seed = pm_seed(link, !link->sender, sender), end = seed + PM_END;
    if (link->messages && length != link->block)
        pm_wrong_size(link, length, sender);
    for (size_t left = length, part; left > 0; left -= part, from += part) {
        part = link->block - link->offset < left ? link->block - link->offset : left;
        bool checks = link->check || !link->begun ||
                      (link->messages && length == link->block && __builtin_memcmp(from, &end, 8) == 0);
        if (checks && pm_matches(link, seed, link->fresh ? link->seen[sender] : 0, link->offset, from, part))
            link->checked += part;
        else if (checks && !pm_unexpected(link, from, part, sender))
            return false;
        link->offset = (link->offset + part) % link->block;
        link->seen[sender] += link->offset == 0 && !link->null;
    }
    link->received += length;
    if (link->sender && !link->null)
        pm_record_trip(link, now);
    pm_count(link, length, now);
    return !(link->null && link->ended);
}

#ifdef __cplusplus
}
#endif
#endif
