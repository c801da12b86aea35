// Both ends of a message_queue of Boost.Interprocess, or of two for round trips.
#include "pipemark_link.hpp"

#include <algorithm>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <optional>
#include <vector>

namespace ip = boost::interprocess;

// The most bytes that a queue may take, where its length in messages would allow more.
constexpr std::size_t max_queued = 64 << 20;

int main() {
    pipemark::Link link;
    auto length = std::min<std::size_t>(std::stoul(link.option("queue", "100")),
                                        std::max<std::size_t>(max_queued / link.block(), 2));
    const std::string names[] = {link.name() + "-there", link.name() + "-back"};
    std::optional<ip::message_queue> there, back;
    if (link.sender()) {
        there.emplace(ip::open_only, names[0].c_str());
        if (link.round_trips())
            back.emplace(ip::open_only, names[1].c_str());
    } else {
        there.emplace(ip::create_only, names[0].c_str(), length, link.block());
        if (link.round_trips())
            back.emplace(ip::create_only, names[1].c_str(), length, link.block());
    }
    link.bound();
    std::vector<unsigned char> room(link.block());
    auto receive = [&](ip::message_queue &queue) {
        std::size_t size;
        unsigned priority;
        queue.receive(room.data(), room.size(), size, priority);
        return link.received(room.data(), size);
    };
    link.ready();
    if (link.sender()) {
        for (auto block = link.next(); !block.empty(); block = link.next()) {
            there->send(block.data(), block.size(), 0);
            if (link.round_trips() && !link.last())
                receive(*back);
        }
    } else {
        while (receive(*there))
            if (link.round_trips())
                back->send(link.next().data(), link.block(), 0);
    }
    link.done();
    if (!link.sender())
        for (auto &name : names)
            ip::message_queue::remove(name.c_str());
}
