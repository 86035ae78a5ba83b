package headrace;

import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import net.jpountz.lz4.LZ4FrameInputStream;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;

/** Files of lz4: in frames, as all tools but Hadoop write them, or in Hadoop's blocks. */
public final class Lz4Codec extends org.apache.hadoop.io.compress.Lz4Codec {
    private static final int[] FRAME = {0x04, 0x22, 0x4D, 0x18};
    private static final int INDEPENDENT = 0x20;

    @Override
    public CompressionInputStream createInputStream(InputStream in) throws IOException {
        return createInputStream(in, createDecompressor());
    }

    @Override
    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        return CompressedFile.of(in, decompressor, "lz4").framed(FRAME, Lz4Codec::frames).stream();
    }

    /** Java's library reads no other frames, and says so too late to be understood. */
    private static InputStream frames(InputStream in) throws IOException {
        PushbackInputStream whole = (PushbackInputStream) in;
        byte[] header = whole.readNBytes(FRAME.length + 1);
        whole.unread(header);
        if (header.length > FRAME.length && (header[FRAME.length] & INDEPENDENT) == 0) {
            throw new IOException("its blocks of lz4 depend on each other, which is not supported; "
                + "write them independent of each other (lz4 -BI; block_linked=False in Python)");
        }
        return new LZ4FrameInputStream(whole);
    }
}
