// Both ends of an Aeron IPC link. The media driver is a process of its own; messages don't go through it.

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import java.nio.ByteBuffer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

public class AeronLink {
    private static final int THERE = 10, BACK = 11, FRAGMENTS = 10;

    private final PipemarkLink link;
    private final IdleStrategy idle;
    private boolean more = true;

    AeronLink(PipemarkLink link) {
        this.link = link;
        idle = link.wait.equals("spin") ? new BusySpinIdleStrategy() : new BackoffIdleStrategy();
    }

    /** A channel whose term buffers have room for messages of this size: a message is at most an eighth of one. */
    private static String channel(int block) {
        return "aeron:ipc?term-length=" + Math.max(16 << 20, Integer.highestOneBit(2 * block - 1) * 8);
    }

    private void send(ExclusivePublication to, ByteBuffer block) {
        UnsafeBuffer buffer = new UnsafeBuffer(block.array());
        for (long result; (result = to.offer(buffer, 0, link.block)) < 0; idle.idle())
            if (result == ExclusivePublication.CLOSED || result == ExclusivePublication.MAX_POSITION_EXCEEDED)
                throw new IllegalStateException(ExclusivePublication.errorString(result));
        idle.reset();
    }

    private void show(DirectBuffer buffer, int offset, int length) {
        ByteBuffer bytes = buffer.byteArray() != null ? ByteBuffer.wrap(buffer.byteArray()) : buffer.byteBuffer();
        more = link.received(bytes.slice(offset + buffer.wrapAdjustment(), length));
    }

    /** Waits for one message or several. */
    private void receive(Subscription from, FragmentHandler handler) {
        for (int count; (count = from.poll(handler, FRAGMENTS)) == 0; ) idle.idle(count);
        idle.reset();
    }

    private void run(Aeron aeron) throws Exception {
        String channel = channel(link.block);
        Subscription from = !link.sender || link.roundTrips ? aeron.addSubscription(channel, link.sender ? BACK : THERE) : null;
        link.bound();
        ExclusivePublication to = null;
        if (link.sender || link.roundTrips) to = aeron.addExclusivePublication(channel, link.sender ? THERE : BACK);
        while (to != null && !to.isConnected() || from != null && !from.isConnected()) Thread.sleep(1);
        link.ready();
        ExclusivePublication replies = link.sender ? null : to;
        boolean[] arrived = new boolean[1];
        FragmentHandler handler = new FragmentAssembler((buffer, offset, length, header) -> {
            arrived[0] = true;
            show(buffer, offset, length);
            try {
                if (more && replies != null) send(replies, link.next());
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        if (link.sender) {
            for (ByteBuffer block; (block = link.next()) != null; ) {
                send(to, block);
                for (arrived[0] = !link.roundTrips || link.last; !arrived[0]; ) receive(from, handler);
            }
        } else {
            while (more) receive(from, handler);
        }
        link.done();
    }

    public static void main(String[] words) throws Exception {
        PipemarkLink link = new PipemarkLink(null);
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName("/dev/shm/" + link.name + "-aeron"))) {
            new AeronLink(link).run(aeron);
        }
    }
}
