// One end of a link that pipemark measures, in Java 17. docs/outside-links.md describes the contract, version 1.

import java.io.*;
import java.lang.invoke.*;
import java.nio.*;
import java.nio.file.*;
import java.util.*;

public final class PipemarkLink {
    private static final long STEP = 0x9e3779b97f4a7c15L, STEP_INVERSE = 0xf1de83e19937733dL, END = 1L << 63;
    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle FIRST = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    public final int block, index;
    public final boolean sender, roundTrips;
    public final String wait, directory, name;
    /** Whether the block of next() is the end of the stream, which gets no reply. */
    public boolean last;

    private final Map<String, String> given = new HashMap<>(), options = new HashMap<>();
    private final BufferedReader in;
    private final PrintStream out;
    private final byte[] toSend, expected;
    private final ByteBuffer expectedView;
    private final long ownSeed, otherSeed;
    private final boolean fresh, check, messages, transfers;
    private final String fault;
    private final long faultAt;
    private final TreeMap<Long, Long> trips = new TreeMap<>();
    private long next, seen, sent, received, written, checked, wrong, found, size, moved, calls, clockCalls, clockBytes;
    private long from, until, begun, ended, bytesInWindow, callsInWindow, cpuBefore, cpuAfter, started, due;
    private int offset;
    private boolean over;
    private double ceiling;

    /** Reads the assignment. `role` is null, except in a program of both ends, where it is such as "receiver0". */
    public PipemarkLink(String role) throws IOException {
        String end = role != null ? role : System.getenv("PIPEMARK_ROLE");
        Path run = Path.of(System.getenv("PIPEMARK_LINK"));
        in = Files.newBufferedReader(run.resolve(end + ".in"));
        out = new PrintStream(new FileOutputStream(run.resolve(end + ".out").toFile()));
        for (String line; !(line = in.readLine()).isEmpty(); ) {
            String[] words = line.split(" ", 2);
            if (words[0].equals("option")) options.put(words[1].split(" ", 2)[0], words[1].split(" ", 2)[1]);
            else given.put(words[0], words[1]);
        }
        if (!given.get("senders").equals("1")) throw new IOException("this module has one sender");
        block = Integer.parseInt(given.get("block"));
        index = Integer.parseInt(given.get("index"));
        sender = given.get("role").equals("sender");
        roundTrips = given.get("mode").equals("round-trips");
        wait = given.get("wait");
        directory = given.get("directory");
        name = given.get("name");
        fresh = given.get("content").equals("fresh");
        check = given.get("check").equals("all");
        messages = given.get("boundaries").equals("kept");
        transfers = given.get("transfer").equals("bytes");
        long seed = Long.parseUnsignedLong(given.get("seed")), back = seed + (1L << 32);
        ownSeed = sender || !transfers ? seed : back;
        otherSeed = sender && transfers ? back : seed;
        String[] words = given.getOrDefault("fault", "none 0").split(" ");
        fault = words[0];
        faultAt = Long.parseLong(words[1]);
        toSend = new byte[(block + 7) / 8 * 8];
        expected = new byte[toSend.length];
        expectedView = ByteBuffer.wrap(expected);
    }

    /** The value of an option of the link. */
    public String option(String name, String otherwise) { return options.getOrDefault(name, otherwise); }

    /** Says that this end exists, so that the other may connect to it. */
    public void bound() { out.println("bound"); }

    /** Says that this end is connected, and waits until all ends are. */
    public void ready() throws IOException {
        fill(toSend, ownSeed, 0);
        fill(expected, otherSeed, 0);
        // The first thousands of calls are interpreted, then compiled.
        for (int batch = 0; fresh && batch < 30; batch++) {
            long begin = System.nanoTime(), rounds = 0;
            for (; System.nanoTime() - begin < 5_000_000; rounds++) {
                if (sender) fill(toSend, ownSeed, 0);
                else if (Arrays.mismatch(toSend, 0, block, expected, 0, block) == -2) throw new IOException();
            }
            ceiling = Math.max(ceiling, rounds * (double) block * 1e9 / (System.nanoTime() - begin));
        }
        cpuTime();
        out.println("ready");
        String[] words = Objects.requireNonNull(in.readLine(), "pipemark has ended").split(" ");
        from = Long.parseLong(words[1]);
        until = Long.parseLong(words[2]);
    }

    /** The next block to send or to return, valid until the next call; null once all have been sent. */
    public ByteBuffer next() throws InterruptedException {
        if (over) return null;
        if (sender && !roundTrips && next > 0) moved(block, 0);
        if (sender && ended != 0) {
            over = true;
            if (!messages || !transfers) return null;
            last = true;
            fill(toSend, ownSeed + END, 0);
            return ByteBuffer.wrap(toSend, 0, block);
        }
        long n = next++, content = n;
        if (fault.equals("drop") && n >= faultAt) content = n + 1;
        if (fault.equals("repeat") && n > faultAt) content = n - 1;
        if (fault.equals("reorder") && (n == faultAt || n == faultAt + 1)) content = 2 * faultAt + 1 - n;
        sent += fault.equals("drop") && n == faultAt ? 2 : fault.equals("repeat") && n == faultAt + 1 ? 0 : 1;
        if (fresh) {
            fill(toSend, ownSeed, transfers ? content : 0);
            written += block;
        }
        if (fault.equals("flip") && n == faultAt) toSend[block / 2] ^= 1;
        if (sender && roundTrips) waitUntilDue();
        return ByteBuffer.wrap(toSend, 0, block);
    }

    /** Checks and counts a message, or any piece of a byte stream. False at the end of a stream of messages. */
    public boolean received(byte[] data, int start, int length) { return received(ByteBuffer.wrap(data).slice(start, length)); }

    /** As above, for what `data` has from its beginning to its limit. */
    public boolean received(ByteBuffer data) {
        int length = data.limit();
        long arrived = sender && transfers ? System.nanoTime() : 0;
        if (messages && length == block && length >= 8 && (long) FIRST.get(data, 0) == otherSeed + END) return false;
        if (messages && length != block && wrong == 0) {
            wrong = seen + 1;
            size = length + 1;
        }
        for (int at = 0; at < length; ) {
            int part = Math.min(block - offset, length - at);
            if (check || begun == 0) check(data, at, part);
            offset = (offset + part) % block;
            if (offset == 0 && transfers && fresh) fill(expected, otherSeed, ++seen);
            at += part;
        }
        received += length;
        if (arrived != 0) {
            int drop = Math.max(0, 53 - Long.numberOfLeadingZeros(arrived - started));
            if (begun != 0 && ended == 0) trips.merge((arrived - started) >> drop << drop, 1L, Long::sum);
            started = arrived;
        }
        moved(length, arrived);
        return transfers || ended == 0;
    }

    /** Reports the results, and waits until all ends have. The sender of a byte stream closes its end before. */
    public void done() throws IOException {
        if (begun != 0 && ended == 0) edge(System.nanoTime());
        out.printf("sent %d%nreceived %d%nwritten %d%nchecked %d%n", sent, received, written, checked);
        out.printf("wrong %d%nfound %d%nsize %d%nmax-rss %d%n", wrong, found, size, peakMemory());
        out.printf("bytes %d%ncalls %d%nns %d%nuser-ns %d%n", bytesInWindow, callsInWindow, ended - begun, cpuAfter - cpuBefore);
        if (ceiling > 0) out.printf("ceiling %.0f%n", ceiling);
        if (given.containsKey("interval")) out.printf("due %d%n", (ended - begun) * 1000 / Long.parseLong(given.get("interval")));
        trips.forEach((ns, times) -> out.printf("trip %d %d%n", ns, times));
        out.println("end");
        in.readLine();
    }

    private void fill(byte[] to, long seed, long n) {
        long word = seed + n * (to.length / 8) * STEP;
        for (int at = 0; at < to.length; at += 8, word += STEP) WORD.set(to, at, word);
    }

    private void check(ByteBuffer data, int at, int part) {
        if (data.slice(at, part).mismatch(expectedView.slice(offset, part)) < 0) checked += part;
        else if (wrong == 0) {
            wrong = seen + 1;
            long words = (block + 7) / 8, place = part < 8 ? 1 : ((long) FIRST.get(data, at) - otherSeed) * STEP_INVERSE;
            if (part == block && place % words == 0 && place >= 0 && place < 1L << 50) found = place / words + 1;
        }
    }

    private void waitUntilDue() throws InterruptedException {
        long gap = Long.parseLong(given.getOrDefault("gap", "0")), interval = Long.parseLong(given.getOrDefault("interval", "0"));
        if (gap == 0 && (interval == 0 || begun == 0)) {
            if (started == 0) started = System.nanoTime();
            return;
        }
        long at = gap > 0 ? System.nanoTime() + gap : begun + interval * ++due / 1000;
        long sleep = (at - System.nanoTime()) / 1_000_000 - 1; // a sleep may be a millisecond too long
        if (sleep > 0) Thread.sleep(sleep);
        while (System.nanoTime() < at) Thread.onSpinWait();
        started = at;
    }

    /** Counts what was moved, and reads the clock, but not for each small block. */
    private void moved(int bytes, long now) {
        moved += bytes;
        calls++;
        clockBytes += bytes;
        if (now == 0 && ++clockCalls < 16 && clockBytes < 65536) return;
        clockCalls = clockBytes = 0;
        now = now != 0 ? now : System.nanoTime();
        if (begun == 0 ? now >= from : ended == 0 && now >= until) edge(now);
    }

    private static long peakMemory() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith("VmHWM:")) return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
        return 0;
    }

    /** The CPU time of all threads in nanoseconds. The platform's bean counts in steps of 10 ms, and takes 50 ms to load. */
    private static long cpuTime() {
        long sum = 0;
        for (File task : Objects.requireNonNullElse(new File("/proc/self/task").listFiles(), new File[0])) {
            try {
                sum += Long.parseLong(Files.readString(task.toPath().resolve("schedstat")).split(" ")[0]);
            } catch (IOException ended) {
                continue;
            }
        }
        return sum;
    }

    private void edge(long now) {
        if (begun == 0) {
            cpuBefore = cpuTime();
            begun = System.nanoTime();
            if (started != 0) started = begun;
        } else {
            ended = now;
            cpuAfter = cpuTime();
        }
        bytesInWindow = moved - bytesInWindow;
        callsInWindow = calls - callsInWindow;
    }
}
