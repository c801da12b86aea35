// One end of a link that pipemark measures, in C++. Compile it with pipemark_link.c.
// docs/outside-links.md describes the contract, of which this is version 1.
#pragma once

#include "pipemark_link.h"

#include <cstddef>
#include <span>
#include <string>

namespace pipemark {

class Link {
  public:
    /// Reads the assignment. `role` names the end in a program that is both ends, such as "receiver0".
    explicit Link(const char *role = nullptr) { pm_start(&link_, role); }
    Link(const Link &) = delete;
    Link &operator=(const Link &) = delete;

    std::size_t block() const { return link_.block; }
    bool sender() const { return link_.sender; }
    bool round_trips() const { return link_.round_trips; }
    /// Whether the block of next() is the end of the stream, which gets no reply.
    bool last() const { return link_.last; }
    unsigned index() const { return link_.index; }
    unsigned senders() const { return link_.senders; }
    unsigned receivers() const { return link_.receivers; }
    std::string wait() const { return link_.wait; }
    std::string directory() const { return link_.directory; }
    std::string name() const { return link_.name; }
    std::string option(const char *name, const char *otherwise) const { return pm_option(&link_, name, otherwise); }

    /// Says that this end exists, so that the other may connect to it.
    void bound() { pm_bound(&link_); }
    /// Says that this end is connected, and waits until all ends are.
    void ready() { pm_ready(&link_); }
    /// The next block to send or to return; empty once all have been sent.
    std::span<unsigned char> next() { return of(pm_next(&link_, nullptr)); }
    /// As next(), but writes the block to `room`.
    std::span<unsigned char> next(void *room) { return of(pm_next(&link_, room)); }
    /// Checks and counts a message, or any piece of a byte stream. False at the end of a stream of messages.
    bool received(const void *data, std::size_t length) { return pm_received(&link_, data, length); }
    /// Reports the results, and waits until all ends have. The sender of a byte stream closes its end before.
    void done() { pm_done(&link_); }

  private:
    std::span<unsigned char> of(unsigned char *block) {
        return block ? std::span(block, link_.block) : std::span<unsigned char>();
    }

    pm_link link_;
};

} // namespace pipemark
