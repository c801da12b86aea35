import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Streams through a pipe in idiomatic Java: ProcessBuilder and streams. */
public final class Idiomatic {
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private Idiomatic() {}

    private static long addWordSums(long checksum, byte[] block, int length) {
        int a = 0;
        int b = 0;
        int whole = length - length % Integer.BYTES;
        for (int i = 0; i < whole; i += Integer.BYTES) {
            a += (int) WORD.get(block, i);
            b += a;
        }
        if (whole < length) {
            byte[] rest = Arrays.copyOf(Arrays.copyOfRange(block, whole, length), Integer.BYTES);
            a += (int) WORD.get(rest, 0);
            b += a;
        }
        return checksum * Stream.FACTOR + ((long) b << 32 | Integer.toUnsignedLong(a));
    }

    private static long addByteXor(long checksum, byte[] block, int length) {
        byte x = 0;
        for (int i = 0; i < length; i++) {
            x ^= block[i];
        }
        return checksum ^ Byte.toUnsignedLong(x);
    }

    private static void child(Stream.Options options) throws IOException {
        boolean document = options.pattern() == Stream.Pattern.DOCUMENT;
        long checksum = document ? 0 : 1;
        long bytes = 0;
        byte[] block = new byte[options.block()];
        System.out.println("ready");
        for (int n; (n = System.in.readNBytes(block, 0, block.length)) > 0; bytes += n) {
            checksum = document ? addByteXor(checksum, block, n) : addWordSums(checksum, block, n);
        }
        System.out.print(new Stream.Answer(bytes, checksum, null).line());
    }

    private static void parent(Stream.Options options, String[] arguments) throws Exception {
        Process process = new ProcessBuilder(Stream.childCommand(Idiomatic.class, arguments))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        byte[] block = new byte[options.block()];
        var blocks = new Stream.Blocks(options, ByteBuffer.wrap(block));
        try (BufferedReader back = new BufferedReader(new InputStreamReader(process.getInputStream()));
                OutputStream data = process.getOutputStream()) {
            if (!"ready".equals(back.readLine())) {
                throw new IllegalStateException("the child ended before it was ready");
            }
            long start = System.nanoTime();
            long number = 0;
            for (int length; (length = blocks.send(number).limit()) > 0; number++) {
                data.write(block, 0, length);
            }
            data.close();
            var answer = Stream.Answer.parse(back.readLine());
            long ns = System.nanoTime() - start;
            if (process.waitFor() != 0) {
                throw new IllegalStateException("the child failed");
            }
            Stream.report(answer, ns);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var options = Stream.Options.parse(arguments);
        if (options.child()) {
            child(options);
        } else {
            parent(options, arguments);
        }
    }
}
