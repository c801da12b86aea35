//! The fastest Zig that still writes, reads and sums every byte: a pipe of 1 MiB, system calls without std.Io, and a
//! checksum in vectors.

const std = @import("std");
const stream = @import("stream.zig");
const Io = std.Io;
const linux = std.os.linux;

const capacity = 1 << 20;
const set_pipe_size = 1031; // F_SETPIPE_SZ
const get_pipe_size = 1032; // F_GETPIPE_SZ

const lanes = 32;
const Lanes = @Vector(lanes, u32);

/// Word i of a block of n words counts n - i times in b. Lane l of L holds the words i = j * L + l of m rows, and
/// sums them m - j times, so b is the sum over lanes of L * b[l] - l * a[l].
fn addWordSums(checksum: u64, block: []const u8) u64 {
    var lanes_a: Lanes = @splat(0);
    var lanes_b: Lanes = @splat(0);
    var rest = block;
    while (rest.len >= @sizeOf(Lanes)) : (rest = rest[@sizeOf(Lanes)..]) {
        const row: *align(1) const Lanes = @ptrCast(rest.ptr);
        lanes_a +%= std.mem.littleToNative(Lanes, row.*);
        lanes_b +%= lanes_a;
    }
    const scale: Lanes = @splat(lanes);
    var a = @reduce(.Add, lanes_a);
    var b = @reduce(.Add, scale *% lanes_b -% std.simd.iota(u32, lanes) *% lanes_a);
    while (rest.len > 0) : (rest = rest[@min(4, rest.len)..]) {
        var word: [4]u8 = @splat(0);
        const size = @min(4, rest.len);
        @memcpy(word[0..size], rest[0..size]);
        a +%= std.mem.readInt(u32, &word, .little);
        b +%= a;
    }
    return checksum *% stream.factor +% (@as(u64, b) << 32 | a);
}

fn addByteXor(checksum: u64, block: []const u8) u64 {
    var x: u8 = 0;
    for (block) |byte| x ^= byte;
    return checksum ^ x;
}

fn writeAll(fd: linux.fd_t, bytes: []const u8) !void {
    var rest = bytes;
    while (rest.len > 0) {
        const n = linux.write(fd, rest.ptr, rest.len);
        switch (linux.errno(n)) {
            .SUCCESS => rest = rest[n..],
            .INTR => {},
            .PIPE => return error.BrokenPipe,
            else => return error.WriteFailed,
        }
    }
}

/// Reads until the block is full or the stream ends. Returns the part that was filled.
fn fill(fd: linux.fd_t, block: []u8) ![]u8 {
    var have: usize = 0;
    while (have < block.len) {
        const n = linux.read(fd, block.ptr + have, block.len - have);
        switch (linux.errno(n)) {
            .SUCCESS => if (n == 0) break else {
                have += n;
            },
            .INTR => {},
            else => return error.ReadFailed,
        }
    }
    return block[0..have];
}

fn runChild(options: *const stream.Options, allocator: std.mem.Allocator) !void {
    const data = linux.STDIN_FILENO;
    const back = linux.STDOUT_FILENO;
    // If 1 MiB exceeds the user's limit, the pipe keeps its capacity. The capacity is read back.
    _ = linux.fcntl(data, set_pipe_size, capacity);
    const size = linux.fcntl(data, get_pipe_size, 0);
    if (linux.errno(size) != .SUCCESS) return error.CapacityUnknown;
    const block = try allocator.alloc(u8, options.block);
    defer allocator.free(block);
    var answer: stream.Answer = .{ .checksum = options.pattern.start(), .capacity = size };
    try writeAll(back, "r");
    while (true) {
        const bytes = try fill(data, block);
        if (bytes.len == 0) break;
        answer.bytes += bytes.len;
        answer.checksum = switch (options.pattern) {
            .position => addWordSums(answer.checksum, bytes),
            .document => addByteXor(answer.checksum, bytes),
        };
    }
    try writeAll(back, std.mem.asBytes(&answer));
}

fn runParent(io: Io, options: *const stream.Options, args: []const [:0]const u8, allocator: std.mem.Allocator) !void {
    var path: [std.fs.max_path_bytes]u8 = undefined;
    var argv: std.ArrayList([]const u8) = .empty;
    defer argv.deinit(allocator);
    try argv.append(allocator, path[0..try std.process.executablePath(io, &path)]);
    try argv.append(allocator, "--child");
    for (args[1..]) |arg| try argv.append(allocator, arg);

    var source = try stream.Source.init(options, allocator);
    defer source.deinit(allocator);
    var child = try std.process.spawn(io, .{ .argv = argv.items, .stdin = .pipe, .stdout = .pipe });
    defer child.kill(io);
    const data = child.stdin.?;
    const back = child.stdout.?.handle;
    var ready: [1]u8 = undefined;
    if ((try fill(back, &ready)).len == 0) return error.ChildNotReady;

    const start = Io.Timestamp.now(io, .awake);
    while (source.next()) |block| try writeAll(data.handle, block);
    data.close(io);
    child.stdin = null;
    var answer: stream.Answer = undefined;
    const answered = try fill(back, std.mem.asBytes(&answer));
    const ns = start.durationTo(.now(io, .awake)).nanoseconds;

    const term = try child.wait(io);
    if (!stream.succeeded(term) or answered.len != @sizeOf(stream.Answer)) return error.ChildFailed;
    try stream.report(io, answer, ns);
}

pub fn main(init: std.process.Init) !void {
    const args = try init.minimal.args.toSlice(init.arena.allocator());
    const options = try stream.Options.parse(args);
    if (options.child) {
        try runChild(&options, init.gpa);
    } else {
        try runParent(init.io, &options, args, init.gpa);
    }
}
