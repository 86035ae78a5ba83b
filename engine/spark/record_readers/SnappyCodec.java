package headrace;

import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;
import org.xerial.snappy.SnappyFramedInputStream;
import org.xerial.snappy.SnappyInputStream;

/** Files of snappy: in frames, as most tools write them, as Java's library does, or in Hadoop's blocks. */
public final class SnappyCodec extends org.apache.hadoop.io.compress.SnappyCodec {
    private static final int[] FRAME = {0xFF, 0x06, 0x00, 0x00, 's', 'N', 'a', 'P', 'p', 'Y'};
    private static final int[] JAVA = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0x00};

    @Override
    public CompressionInputStream createInputStream(InputStream in) throws IOException {
        return createInputStream(in, createDecompressor());
    }

    @Override
    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        return CompressedFile.of(in, decompressor, "snappy").framed(FRAME, SnappyFramedInputStream::new)
            .framed(JAVA, SnappyInputStream::new).stream();
    }
}
