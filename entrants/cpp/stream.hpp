// Shared by both programs: the options, the bytes to send, and the ends of a pipe.
// Each program sets up the pipe and sums the bytes in its own way. See ../README.md.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace stream {

// The compiler that compiled the program.
#ifdef __clang__
inline constexpr const char *compiler = "clang++";
inline constexpr const char *version = __clang_version__;
#else
inline constexpr const char *compiler = "g++";
inline constexpr const char *version = __VERSION__;
#endif

enum class Pattern { position, document };

struct Options {
    std::uint64_t bytes = 0;
    std::size_t block = 0;
    Pattern pattern = Pattern::position;
    std::uint32_t seed = 0;
    std::optional<std::uint64_t> flip;
};

inline std::uint64_t parse_number(std::string_view name, std::string_view text, std::uint64_t max) {
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value > max)
        throw std::invalid_argument(std::string(name) + " must be a whole number up to " + std::to_string(max) +
                                    ", not \"" + std::string(text) + '"');
    return value;
}

inline Options parse_options(std::span<char *> arguments) {
    Options options;
    bool has_bytes = false;
    for (std::size_t i = 1; i < arguments.size(); i += 2) {
        const std::string_view name = arguments[i];
        if (i + 1 == arguments.size())
            throw std::invalid_argument(std::string(name) + " needs a value");
        const std::string_view value = arguments[i + 1];
        if (name == "--bytes") {
            options.bytes = parse_number(name, value, INT64_MAX);
            has_bytes = true;
        } else if (name == "--block") {
            options.block = parse_number(name, value, 1u << 30);
        } else if (name == "--pattern" && value == "position") {
            options.pattern = Pattern::position;
        } else if (name == "--pattern" && value == "document") {
            options.pattern = Pattern::document;
        } else if (name == "--seed") {
            options.seed = static_cast<std::uint32_t>(parse_number(name, value, UINT32_MAX));
        } else if (name == "--flip") {
            options.flip = parse_number(name, value, INT64_MAX);
        } else {
            throw std::invalid_argument(std::string(name) + ' ' + std::string(value) + " is not known");
        }
    }
    if (!has_bytes || options.block == 0)
        throw std::invalid_argument("--bytes and a --block of at least 1 are needed");
    return options;
}

// Memory for one block, starting on a page.
class Block {
  public:
    explicit Block(std::size_t size) : memory_(new (page) std::byte[size]{}), size_(size) {}
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    ~Block() { ::operator delete[](memory_, page); }

    [[nodiscard]] std::span<std::byte> bytes() const { return {memory_, size_}; }

  private:
    static constexpr std::align_val_t page{4096};
    std::byte *memory_;
    std::size_t size_;
};

// The blocks in the order in which they are sent.
class Source {
  public:
    explicit Source(const Options &options) : options_(options), block_(options.block) {
        std::uint32_t x = options.seed;
        std::size_t i = 0;
        for (std::byte &byte : block_.bytes()) {
            x = x * 1664525u + 1013904223u;
            byte = std::byte(options.pattern == Pattern::document ? i++ & 0xff : x >> 24);
        }
    }

    // Block `number`, or an empty block after the last; valid until the next call.
    std::span<const std::byte> block(std::uint64_t number) {
        const std::uint64_t offset = number * options_.block;
        const auto bytes = block_.bytes().first(
            std::min<std::uint64_t>(options_.block, options_.bytes - std::min(offset, options_.bytes)));
        if (flipped_ != nullptr)
            *std::exchange(flipped_, nullptr) ^= std::byte{0xff};
        if (options_.pattern == Pattern::position)
            for (std::size_t i = 0; i < std::min<std::size_t>(8, bytes.size()); ++i)
                bytes[i] = std::byte(number >> (8 * i) & 0xff);
        if (options_.flip && *options_.flip >= offset && *options_.flip - offset < bytes.size()) {
            flipped_ = &bytes[*options_.flip - offset];
            *flipped_ ^= std::byte{0xff};
        }
        return bytes;
    }

  private:
    const Options &options_;
    Block block_;
    std::byte *flipped_ = nullptr; // the byte to restore before the next block
};

// A file descriptor that is closed when it goes out of scope.
class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor &operator=(Descriptor &&) = delete;
    ~Descriptor() { close(); }

    [[nodiscard]] int get() const { return fd_; }

    void close() {
        if (fd_ >= 0)
            ::close(std::exchange(fd_, -1));
    }

    void write(std::span<const std::byte> bytes) const {
        while (!bytes.empty()) {
            const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
            if (n < 0)
                throw std::system_error(errno, std::generic_category(), "cannot write to the pipe");
            bytes = bytes.subspan(static_cast<std::size_t>(n));
        }
    }

    // Reads until the span is full or the stream ends. Returns the part that was filled.
    [[nodiscard]] std::span<std::byte> read(std::span<std::byte> bytes) const {
        std::size_t have = 0;
        while (have < bytes.size()) {
            const ssize_t n = ::read(fd_, bytes.data() + have, bytes.size() - have);
            if (n < 0)
                throw std::system_error(errno, std::generic_category(), "cannot read from the pipe");
            if (n == 0)
                break;
            have += static_cast<std::size_t>(n);
        }
        return bytes.first(have);
    }

  private:
    int fd_;
};

struct Pipe {
    Descriptor read;
    Descriptor write;

    static Pipe open() {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC) < 0)
            throw std::system_error(errno, std::generic_category(), "cannot create a pipe");
        return {Descriptor(fds[0]), Descriptor(fds[1])};
    }
};

// Sums the blocks that the child receives.
template <typename T>
concept Checksum = requires(T checksum, std::span<const std::byte> block) {
    checksum.add(block);
    { checksum.value() } -> std::same_as<std::uint64_t>;
};

struct Answer {
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
};

template <Checksum C> void child(const Options &options, const Descriptor &data, const Descriptor &back) {
    const Block block(options.block);
    C checksum(options.pattern);
    Answer answer;
    const std::byte ready{'r'};
    back.write({&ready, 1});
    for (auto bytes = data.read(block.bytes()); !bytes.empty(); bytes = data.read(block.bytes())) {
        checksum.add(bytes);
        answer.bytes += bytes.size();
    }
    answer.checksum = checksum.value();
    back.write(std::as_bytes(std::span(&answer, 1)));
}

inline void parent(const Options &options, Descriptor data, const Descriptor &back, pid_t pid) {
    using clock = std::chrono::steady_clock;
    Source source(options);
    std::byte ready;
    if (back.read({&ready, 1}).empty())
        throw std::runtime_error("the child ended before it was ready");
    const auto start = clock::now();
    std::uint64_t number = 0;
    for (auto block = source.block(number); !block.empty(); block = source.block(++number))
        data.write(block);
    const int capacity = ::fcntl(data.get(), F_GETPIPE_SZ);
    data.close();
    Answer answer;
    const auto answered = back.read(std::as_writable_bytes(std::span(&answer, 1)));
    const auto ns = std::chrono::nanoseconds(clock::now() - start).count();

    int status = 0;
    if (::waitpid(pid, &status, 0) < 0 || status != 0 || answered.size() != sizeof answer)
        throw std::runtime_error("the child failed");
    std::printf("{\"language\":\"C++\",\"runtime\":\"%s %s\",\"bytes\":%llu,\"ns\":%lld,\"checksum\":\"%016llx\","
                "\"capacity\":%d}\n",
                compiler, version, static_cast<unsigned long long>(answer.bytes), static_cast<long long>(ns),
                static_cast<unsigned long long>(answer.checksum), capacity);
    if (std::fflush(stdout) != 0)
        throw std::system_error(errno, std::generic_category(), "cannot write the result");
}

// Streams the bytes through `data` from this process to a child.
template <Checksum C> void run(const Options &options, Pipe data) {
    Pipe back = Pipe::open();
    ::signal(SIGPIPE, SIG_IGN);
    const pid_t pid = ::fork();
    if (pid < 0)
        throw std::system_error(errno, std::generic_category(), "cannot fork");
    if (pid == 0) {
        data.write.close();
        back.read.close();
        child<C>(options, data.read, back.write);
    } else {
        data.read.close();
        back.write.close();
        parent(options, std::move(data.write), back.read, pid);
    }
}

// The body of main. Returns exit status 0 on success, 2 for invalid usage, 1 for other errors.
template <Checksum C, typename OpenPipe> int main(std::span<char *> arguments, OpenPipe open) {
    try {
        run<C>(parse_options(arguments), open());
        return 0;
    } catch (const std::invalid_argument &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

} // namespace stream
