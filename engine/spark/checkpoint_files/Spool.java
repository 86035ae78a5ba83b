package headrace;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;

/** The content of a file between its writer and its place, with its sum: small ones in memory, others on the disk. */
final class Spool extends OutputStream {
    private static final int IN_MEMORY = 1 << 22;

    private final MessageDigest digest;
    private ByteArrayOutputStream memory = new ByteArrayOutputStream();
    private Path file;
    private OutputStream disk;
    private long length;
    private String sum;

    Spool() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException error) {
            // Every Java has it.
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void write(int one) throws IOException {
        write(new byte[] {(byte) one}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int count) throws IOException {
        digest.update(bytes, offset, count);
        length += count;
        if (memory != null && memory.size() + count > IN_MEMORY) {
            file = Files.createTempFile("headrace-", ".spool");
            disk = Files.newOutputStream(file, StandardOpenOption.WRITE);
            memory.writeTo(disk);
            memory = null;
        }
        (memory != null ? memory : disk).write(bytes, offset, count);
    }

    @Override
    public void close() throws IOException {
        if (disk != null) {
            disk.close();
        }
    }

    long length() {
        return length;
    }

    /** The sum of all that was written; nothing can be written afterwards. */
    String sum() {
        if (sum == null) {
            sum = HexFormat.of().formatHex(digest.digest());
        }
        return sum;
    }

    InputStream open() throws IOException {
        return memory != null ? new ByteArrayInputStream(memory.toByteArray())
            : new BufferedInputStream(Files.newInputStream(file), 1 << 16);
    }

    /** A stream as Hadoop has them; the content is gone when it is closed. */
    FSDataInputStream reader() throws IOException {
        return new FSDataInputStream(new Reader());
    }

    void discard() {
        memory = null;
        if (file != null) {
            try {
                if (disk != null) {
                    disk.close();
                }
                Files.deleteIfExists(file);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private final class Reader extends FSInputStream {
        private final FileChannel channel;
        private final byte[] bytes;
        private long position;

        Reader() throws IOException {
            channel = memory == null ? FileChannel.open(file, StandardOpenOption.READ) : null;
            bytes = memory == null ? null : memory.toByteArray();
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] to, int offset, int count) throws IOException {
            if (count == 0) {
                return 0;
            }
            if (position >= length) {
                return -1;
            }
            int come;
            if (bytes != null) {
                come = (int) Math.min(count, length - position);
                System.arraycopy(bytes, (int) position, to, offset, come);
            } else {
                come = channel.read(ByteBuffer.wrap(to, offset, count), position);
            }
            position += Math.max(come, 0);
            return come;
        }

        @Override
        public int available() {
            return (int) Math.min(length - position, Integer.MAX_VALUE);
        }

        @Override
        public void seek(long to) throws IOException {
            if (to < 0 || to > length) {
                throw new EOFException("there is no byte " + to + " of " + length);
            }
            position = to;
        }

        @Override
        public long getPos() {
            return position;
        }

        @Override
        public boolean seekToNewSource(long to) {
            return false;
        }

        @Override
        public void close() throws IOException {
            if (channel != null) {
                channel.close();
            }
            discard();
        }
    }
}
