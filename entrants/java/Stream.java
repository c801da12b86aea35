import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Shared by both programs: the options, the bytes to send, and the result line. Each program moves and sums bytes in
 * its own way. See ../README.md.
 */
final class Stream {
    /** Multiplies the checksum before each block's sums are added to it. */
    static final long FACTOR = 0x9E3779B97F4A7C15L;

    private static final int NONE = -1;

    private Stream() {}

    enum Pattern {
        POSITION,
        DOCUMENT
    }

    /** The command line; {@code flip} is the offset of the byte to invert, negative for none. */
    static final class Options {
        private final boolean child;
        private final long bytes;
        private final int block;
        private final Pattern pattern;
        private final int seed;
        private final long flip;

        Options(boolean child, long bytes, int block, Pattern pattern, int seed, long flip) {
            this.child = child;
            this.bytes = bytes;
            this.block = block;
            this.pattern = pattern;
            this.seed = seed;
            this.flip = flip;
        }

        boolean child() {
            return child;
        }

        long bytes() {
            return bytes;
        }

        int block() {
            return block;
        }

        Pattern pattern() {
            return pattern;
        }

        int seed() {
            return seed;
        }

        static Options parse(String[] arguments) {
            boolean child = false;
            long bytes = NONE;
            int block = 0;
            Pattern pattern = Pattern.POSITION;
            int seed = 0;
            long flip = NONE;
            var rest = List.of(arguments).iterator();
            try {
                while (rest.hasNext()) {
                    String name = rest.next();
                    switch (name) {
                        case "--child":
                            child = true;
                            break;
                        case "--bytes":
                            bytes = Long.parseLong(rest.next());
                            break;
                        case "--block":
                            block = Integer.parseInt(rest.next());
                            break;
                        case "--pattern":
                            pattern = Pattern.valueOf(rest.next().toUpperCase());
                            break;
                        case "--seed":
                            seed = Integer.parseUnsignedInt(rest.next());
                            break;
                        case "--flip":
                            flip = Long.parseLong(rest.next());
                            break;
                        default:
                            throw new IllegalArgumentException(name + " is not known");
                    }
                }
            } catch (IllegalArgumentException | java.util.NoSuchElementException error) {
                throw usage(error.getMessage());
            }
            if (bytes < 0 || block < 1) {
                throw usage("--bytes and a --block of at least 1 are needed");
            }
            return new Options(child, bytes, block, pattern, seed, flip);
        }

        private static RuntimeException usage(String reason) {
            System.err.println(reason);
            System.exit(2);
            return new IllegalStateException();
        }
    }

    /** The blocks of a stream, which use one buffer in turn. */
    static final class Blocks {
        private final Options options;
        private final ByteBuffer buffer;
        private int flipped = NONE; // the byte to restore before the next block

        /** Makes block 0 in the given buffer, whose capacity is the block size. */
        Blocks(Options options, ByteBuffer buffer) {
            this.options = options;
            this.buffer = buffer.order(ByteOrder.LITTLE_ENDIAN);
            int x = options.seed;
            for (int i = 0; i < options.block; i++) {
                x = x * 1664525 + 1013904223;
                buffer.put(i, (byte) (options.pattern == Pattern.DOCUMENT ? i : x >>> 24));
            }
            expect(0);
        }

        /** The whole block with this number, valid until the next call. */
        ByteBuffer expect(long number) {
            buffer.clear();
            if (options.pattern == Pattern.POSITION) {
                if (options.block >= Long.BYTES) {
                    buffer.putLong(0, number);
                } else {
                    for (int i = 0; i < options.block; i++) {
                        buffer.put(i, (byte) (number >>> 8 * i));
                    }
                }
            }
            return buffer;
        }

        /** The block with this number as it is sent, or an empty one after the last; valid until the next call. */
        ByteBuffer send(long number) {
            if (flipped != NONE) {
                invert(flipped);
                flipped = NONE;
            }
            long offset = number * options.block;
            expect(number).limit((int) Math.max(0, Math.min(options.block, options.bytes - offset)));
            if (offset <= options.flip && options.flip - offset < buffer.limit()) {
                flipped = (int) (options.flip - offset);
                invert(flipped);
            }
            return buffer;
        }

        private void invert(int index) {
            buffer.put(index, (byte) ~buffer.get(index));
        }
    }

    /** The child's result; the capacity is in bytes, and null if unknown. */
    static final class Answer {
        private final long bytes;
        private final long checksum;
        private final Integer capacity;

        Answer(long bytes, long checksum, Integer capacity) {
            this.bytes = bytes;
            this.checksum = checksum;
            this.capacity = capacity;
        }

        /** The line that the child sends to its parent. */
        String line() {
            return bytes + " " + Long.toHexString(checksum) + " " + capacity + "\n";
        }

        static Answer parse(String line) {
            if (line == null) {
                throw new IllegalStateException("the child ended without an answer");
            }
            String[] words = line.split(" ");
            return new Answer(
                    Long.parseLong(words[0]),
                    Long.parseUnsignedLong(words[1], 16),
                    words[2].equals("null") ? null : Integer.valueOf(words[2]));
        }
    }

    /** The command that starts this program as the child. */
    static List<String> childCommand(Class<?> program, String[] arguments) {
        var info = ProcessHandle.current().info();
        var command = new java.util.ArrayList<String>();
        command.add(info.command().orElseThrow());
        command.addAll(java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName(), "--child"));
        command.addAll(List.of(arguments));
        return command;
    }

    /** Prints the result line that the contract requires. */
    static void report(Answer answer, long ns) {
        System.out.printf(
                "{\"language\":\"Java\",\"runtime\":\"%s %s\",\"bytes\":%d,\"ns\":%d,\"checksum\":\"%016x\","
                        + "\"capacity\":%d}%n",
                System.getProperty("java.vm.name"),
                System.getProperty("java.vm.version"),
                answer.bytes,
                ns,
                answer.checksum,
                answer.capacity);
    }
}
