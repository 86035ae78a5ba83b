package headrace;

import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import org.apache.hadoop.fs.Seekable;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;
import org.apache.hadoop.io.compress.SplitCompressionInputStream;

/** Files of bzip2. Hadoop looks for the first block in them, and reads a file without one as if it were empty. */
public final class BZip2Codec extends org.apache.hadoop.io.compress.BZip2Codec {
    private static final int[] MARK = {'B', 'Z', 'h'};

    @Override
    public SplitCompressionInputStream createInputStream(InputStream in, Decompressor decompressor, long start, long end,
            READ_MODE mode) throws IOException {
        if (start == 0) {
            ((Seekable) in).seek(0);
            check(in.readNBytes(MARK.length));
            ((Seekable) in).seek(0);
        }
        return super.createInputStream(in, decompressor, start, end, mode);
    }

    @Override
    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        PushbackInputStream whole = new PushbackInputStream(in, MARK.length);
        byte[] begin = whole.readNBytes(MARK.length);
        check(begin);
        whole.unread(begin);
        return super.createInputStream(whole, decompressor);
    }

    private static void check(byte[] begin) throws IOException {
        if (begin.length > 0 && !CompressedFile.begins(begin, MARK)) {
            throw new IOException("it is not in the format of its name, bzip2");
        }
    }
}
