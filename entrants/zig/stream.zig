//! Shared by both programs: the options, the bytes to send, and the answer.
//! Each program moves and sums bytes in its own way. See ../README.md.

const std = @import("std");
const builtin = @import("builtin");

/// Multiplies the checksum before each block's sums are added to it.
pub const factor: u64 = 0x9E3779B97F4A7C15;

pub const Pattern = enum {
    position,
    document,

    /// The checksum of no bytes.
    pub fn start(pattern: Pattern) u64 {
        return switch (pattern) {
            .position => 1,
            .document => 0,
        };
    }
};

pub const Options = struct {
    child: bool = false,
    bytes: u64 = 0,
    block: usize = 0,
    pattern: Pattern = .position,
    seed: u32 = 0,
    flip: ?u64 = null,

    /// `args` is the whole command line.
    pub fn parse(args: []const [:0]const u8) !Options {
        var options: Options = .{};
        var has_bytes = false;
        var i: usize = 1;
        while (i < args.len) : (i += 1) {
            const name = args[i];
            if (std.mem.eql(u8, name, "--child")) {
                options.child = true;
                continue;
            }
            i += 1;
            if (i == args.len) return error.ValueMissing;
            const value = args[i];
            if (std.mem.eql(u8, name, "--bytes")) {
                options.bytes = try std.fmt.parseInt(u63, value, 10);
                has_bytes = true;
            } else if (std.mem.eql(u8, name, "--block")) {
                options.block = try std.fmt.parseInt(u31, value, 10);
            } else if (std.mem.eql(u8, name, "--pattern")) {
                options.pattern = std.meta.stringToEnum(Pattern, value) orelse return error.PatternUnknown;
            } else if (std.mem.eql(u8, name, "--seed")) {
                options.seed = try std.fmt.parseInt(u32, value, 10);
            } else if (std.mem.eql(u8, name, "--flip")) {
                options.flip = try std.fmt.parseInt(u63, value, 10);
            } else {
                return error.OptionUnknown;
            }
        }
        if (!has_bytes or options.block == 0) return error.BytesOrBlockMissing;
        return options;
    }
};

/// The blocks in the order in which they are sent.
pub const Source = struct {
    options: *const Options,
    buffer: []u8,
    offset: u64 = 0,
    /// The byte to restore before the next block.
    flipped: ?*u8 = null,

    pub fn init(options: *const Options, allocator: std.mem.Allocator) !Source {
        const buffer = try allocator.alloc(u8, options.block);
        var x = options.seed;
        for (buffer, 0..) |*byte, i| {
            x = x *% 1664525 +% 1013904223;
            byte.* = switch (options.pattern) {
                .position => @intCast(x >> 24),
                .document => @truncate(i),
            };
        }
        return .{ .options = options, .buffer = buffer };
    }

    pub fn deinit(source: *Source, allocator: std.mem.Allocator) void {
        allocator.free(source.buffer);
    }

    /// The next block, or null after the last; valid until the next call.
    pub fn next(source: *Source) ?[]const u8 {
        const options = source.options;
        if (source.offset == options.bytes) return null;
        const bytes = source.buffer[0..@min(options.block, options.bytes - source.offset)];
        if (source.flipped) |byte| {
            byte.* = ~byte.*;
            source.flipped = null;
        }
        if (options.pattern == .position) {
            var stamp: [8]u8 = undefined;
            std.mem.writeInt(u64, &stamp, source.offset / options.block, .little);
            const size = @min(stamp.len, bytes.len);
            @memcpy(bytes[0..size], stamp[0..size]);
        }
        if (options.flip) |flip| {
            if (flip >= source.offset and flip - source.offset < bytes.len) {
                const byte = &bytes[flip - source.offset];
                byte.* = ~byte.*;
                source.flipped = byte;
            }
        }
        source.offset += bytes.len;
        return bytes;
    }
};

/// The child's result.
pub const Answer = extern struct {
    bytes: u64 = 0,
    checksum: u64,
    /// In bytes; 0 if unknown.
    capacity: u64 = 0,
};

/// Whether a child exited with status 0. Zig 0.16 has no Term.success.
pub fn succeeded(term: std.process.Child.Term) bool {
    return switch (term) {
        .exited => |code| code == 0,
        else => false,
    };
}

/// Prints the result line that the contract requires.
pub fn report(io: std.Io, answer: Answer, ns: i96) !void {
    var buffer: [256]u8 = undefined;
    var out = std.Io.File.stdout().writerStreaming(io, &buffer);
    try out.interface.print(
        "{{\"language\":\"Zig\",\"runtime\":\"zig {s}\",\"bytes\":{d},\"ns\":{d},\"checksum\":\"{x:0>16}\",\"capacity\":",
        .{ builtin.zig_version_string, answer.bytes, ns, answer.checksum },
    );
    if (answer.capacity == 0) {
        try out.interface.writeAll("null}\n");
    } else {
        try out.interface.print("{d}}}\n", .{answer.capacity});
    }
    try out.interface.flush();
}
