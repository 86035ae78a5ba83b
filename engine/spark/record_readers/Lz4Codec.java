package headrace;

import java.io.IOException;
import java.io.InputStream;
import net.jpountz.lz4.LZ4FrameInputStream;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;

/** Files of lz4: in frames, as all tools but Hadoop write them, or in Hadoop's blocks. */
public final class Lz4Codec extends org.apache.hadoop.io.compress.Lz4Codec {
    private static final int[] FRAME = {0x04, 0x22, 0x4D, 0x18};

    @Override
    public CompressionInputStream createInputStream(InputStream in) throws IOException {
        return createInputStream(in, createDecompressor());
    }

    @Override
    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        return CompressedFile.of(in, decompressor, "lz4").framed(FRAME, LZ4FrameInputStream::new).stream();
    }
}
