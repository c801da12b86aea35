//! Streams through a pipe in idiomatic Zig: std.process and std.Io.

const std = @import("std");
const stream = @import("stream.zig");
const Io = std.Io;

fn addWordSums(checksum: u64, block: []const u8) u64 {
    var a: u32 = 0;
    var b: u32 = 0;
    var rest = block;
    while (rest.len >= 4) : (rest = rest[4..]) {
        a +%= std.mem.readInt(u32, rest[0..4], .little);
        b +%= a;
    }
    if (rest.len > 0) {
        var word: [4]u8 = @splat(0);
        @memcpy(word[0..rest.len], rest);
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

fn runChild(io: Io, options: *const stream.Options, allocator: std.mem.Allocator) !void {
    const block = try allocator.alloc(u8, options.block);
    defer allocator.free(block);
    var in = Io.File.stdin().readerStreaming(io, &.{});
    var answer: stream.Answer = .{ .checksum = options.pattern.start() };
    try Io.File.stdout().writeStreamingAll(io, "r");
    while (true) {
        const bytes = block[0..try in.interface.readSliceShort(block)];
        if (bytes.len == 0) break;
        answer.bytes += bytes.len;
        answer.checksum = switch (options.pattern) {
            .position => addWordSums(answer.checksum, bytes),
            .document => addByteXor(answer.checksum, bytes),
        };
        if (bytes.len < block.len) break;
    }
    try Io.File.stdout().writeStreamingAll(io, std.mem.asBytes(&answer));
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
    var back = child.stdout.?.readerStreaming(io, &.{});
    var ready: [1]u8 = undefined;
    try back.interface.readSliceAll(&ready);

    const start = Io.Timestamp.now(io, .awake);
    const data = child.stdin.?;
    while (source.next()) |block| try data.writeStreamingAll(io, block);
    data.close(io);
    child.stdin = null;
    var answer: stream.Answer = undefined;
    try back.interface.readSliceAll(std.mem.asBytes(&answer));
    const ns = start.durationTo(.now(io, .awake)).nanoseconds;

    const term = try child.wait(io);
    if (!stream.succeeded(term)) return error.ChildFailed;
    try stream.report(io, answer, ns);
}

pub fn main(init: std.process.Init) !void {
    const args = try init.minimal.args.toSlice(init.arena.allocator());
    const options = try stream.Options.parse(args);
    if (options.child) {
        try runChild(init.io, &options, init.gpa);
    } else {
        try runParent(init.io, &options, args, init.gpa);
    }
}
