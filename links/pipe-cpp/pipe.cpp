// Both ends of a named pipe, or of two for round trips. With the argument null, there is no transfer.
#include "pipemark_link.hpp"

#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

static void without_transfer(pipemark::Link &link) {
    link.ready();
    auto next = link.next();
    std::vector<unsigned char> block(next.begin(), next.end());
    if (link.sender())
        while (!link.next().empty())
            ;
    else
        while (link.received(block.data(), block.size()))
            ;
}

class Pipe {
  public:
    Pipe(const std::string &path, bool writes) : fd_(open(path.c_str(), writes ? O_WRONLY : O_RDONLY)) {
        if (fd_ < 0)
            throw std::runtime_error(path);
    }
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;
    ~Pipe() { close(fd_); }

    void write_block(std::span<unsigned char> block) {
        while (!block.empty()) {
            auto written = write(fd_, block.data(), block.size());
            if (written < 0)
                throw std::runtime_error("write");
            block = block.subspan(written);
        }
    }

    /// Reads at most a block, or all of one if `whole`. Returns the number of bytes, 0 at the end.
    std::size_t read_block(std::vector<unsigned char> &room, bool whole) {
        std::size_t done = 0;
        do {
            auto got = read(fd_, room.data() + done, room.size() - done);
            if (got <= 0)
                return done;
            done += got;
        } while (whole && done < room.size());
        return done;
    }

  private:
    int fd_;
};

static void pipe(pipemark::Link &link) {
    auto path = [&](const char *name) { return link.directory() + "/" + name; };
    if (!link.sender() && (mkfifo(path("there").c_str(), 0600) != 0 || mkfifo(path("back").c_str(), 0600) != 0))
        throw std::runtime_error("mkfifo");
    link.bound();
    Pipe there(path("there"), link.sender());
    Pipe back(link.round_trips() ? path("back") : "/dev/null", !link.sender());
    std::vector<unsigned char> room(link.block());
    link.ready();
    if (link.sender()) {
        for (auto block = link.next(); !block.empty(); block = link.next()) {
            there.write_block(block);
            if (link.round_trips() && back.read_block(room, true) > 0)
                link.received(room.data(), room.size());
        }
    } else {
        while (auto got = there.read_block(room, link.round_trips())) {
            link.received(room.data(), got);
            if (link.round_trips())
                back.write_block(link.next());
        }
    }
}

int main(int argc, char **) {
    pipemark::Link link;
    argc > 1 ? without_transfer(link) : pipe(link);
    link.done();
}
