package headrace;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import org.apache.hadoop.io.compress.BlockDecompressorStream;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;

/**
 * A compressed file that is read by how it begins.
 *
 * Hadoop's codecs of lz4 and snappy read blocks with their sizes before them, which no other tool writes. What other
 * tools write has other bytes there: they make room for a gigabyte, and Java ends (measured, Hadoop 3.4).
 */
final class CompressedFile {
    private static final int LONGEST_MARK = 10;
    private static final int BUFFER = 256 << 10;
    /** More than any writer puts into one block. */
    private static final int LARGEST_BLOCK = 64 << 20;

    private final PushbackInputStream in;
    private final Decompressor decompressor;
    private final String codec;
    private final byte[] begin;
    private CompressionInputStream framed;

    private CompressedFile(InputStream in, Decompressor decompressor, String codec) throws IOException {
        this.in = new PushbackInputStream(in, LONGEST_MARK);
        this.decompressor = decompressor;
        this.codec = codec;
        begin = this.in.readNBytes(LONGEST_MARK);
        this.in.unread(begin);
    }

    static CompressedFile of(InputStream in, Decompressor decompressor, String codec) throws IOException {
        return new CompressedFile(in, decompressor, codec);
    }

    interface Reader {
        InputStream read(InputStream in) throws IOException;
    }

    /** Read it by a reader if it begins with these bytes. */
    CompressedFile framed(int[] mark, Reader reader) throws IOException {
        if (begins(begin, mark)) {
            framed = new Frames(in, reader.read(in));
        }
        return this;
    }

    static boolean begins(byte[] begin, int[] mark) {
        boolean begins = begin.length >= mark.length;
        for (int i = 0; begins && i < mark.length; i++) {
            begins = (begin[i] & 0xFF) == mark[i];
        }
        return begins;
    }

    CompressionInputStream stream() throws IOException {
        return framed != null ? framed : new Blocks(in, decompressor, codec);
    }

    private static final class Frames extends CompressionInputStream {
        private final InputStream frames;

        /** Hadoop asks a stream how much is available before it is read, which that of lz4 does not bear. */
        Frames(InputStream in, InputStream frames) throws IOException {
            super(in);
            this.frames = frames;
        }

        @Override
        public int read() throws IOException {
            return frames.read();
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            return frames.read(bytes, offset, length);
        }

        @Override
        public void resetState() {
            throw new UnsupportedOperationException();
        }
    }

    /** Hadoop's blocks, with sizes that a writer may have written. */
    private static final class Blocks extends BlockDecompressorStream {
        private final String codec;

        Blocks(InputStream in, Decompressor decompressor, String codec) throws IOException {
            super(in, decompressor, BUFFER);
            this.codec = codec;
        }

        @Override
        protected int getCompressedData() throws IOException {
            int length = 0;
            for (int i = 0; i < Integer.BYTES; i++) {
                int next = in.read();
                if (next < 0) {
                    throw new EOFException("the file ends within a block of " + codec);
                }
                length = length << Byte.SIZE | next;
            }
            if (length < 0 || length > LARGEST_BLOCK) {
                throw new IOException("it is not in the format of its name, neither frames of " + codec
                    + " nor Hadoop's blocks");
            }
            if (length > buffer.length) {
                buffer = new byte[length];
            }
            int read = in.readNBytes(buffer, 0, length);
            if (read < length) {
                throw new EOFException("the file ends within a block of " + codec);
            }
            return length;
        }
    }
}
