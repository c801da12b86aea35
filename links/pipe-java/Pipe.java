// Both ends of a named pipe, or of two for round trips. With the argument null, there is no transfer.

import java.io.*;
import java.nio.file.Path;

public class Pipe {
    static void withoutTransfer(PipemarkLink link) throws Exception {
        link.ready();
        byte[] block = link.next().array().clone();
        if (link.sender) while (link.next() != null);
        else while (link.received(block, 0, link.block));
    }

    static void pipe(PipemarkLink link) throws Exception {
        String there = Path.of(link.directory, "there").toString(), back = Path.of(link.directory, "back").toString();
        if (!link.sender && new ProcessBuilder("mkfifo", there, back).start().waitFor() != 0) throw new IOException("mkfifo");
        link.bound();
        byte[] room = new byte[link.block];
        if (link.sender) {
            try (OutputStream to = new FileOutputStream(there);
                 InputStream from = link.roundTrips ? new FileInputStream(back) : InputStream.nullInputStream()) {
                link.ready();
                for (var block = link.next(); block != null; block = link.next()) {
                    to.write(block.array(), 0, link.block);
                    if (link.roundTrips && from.readNBytes(room, 0, link.block) == link.block) link.received(room, 0, link.block);
                }
            }
            return;
        }
        try (InputStream from = new FileInputStream(there);
             OutputStream to = link.roundTrips ? new FileOutputStream(back) : OutputStream.nullOutputStream()) {
            link.ready();
            int count;
            while ((count = link.roundTrips ? from.readNBytes(room, 0, link.block) : from.read(room)) > 0) {
                link.received(room, 0, count);
                if (link.roundTrips) to.write(link.next().array(), 0, link.block);
            }
        }
    }

    public static void main(String[] words) throws Exception {
        PipemarkLink link = new PipemarkLink(null);
        if (words.length > 0) withoutTransfer(link);
        else pipe(link);
        link.done();
    }
}
