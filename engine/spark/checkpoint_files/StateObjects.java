package headrace;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.S3AFileSystem;

/**
 * Hadoop's S3A, which compares the files of Spark's state with their sums.
 *
 * RocksDB's snapshots are read, and its files written and read, without the manager of a checkpoint's files. S3A itself
 * takes a connection that ends too early for the end of an object (Hadoop 3.4.2, S3AInputStream.read).
 */
public final class StateObjects extends S3AFileSystem {
    private static final Pattern STATE = Pattern.compile("/checkpoint(\\.[0-9]+)?/state/");

    private static boolean isState(Path path) {
        return STATE.matcher(path.toUri().getPath()).find();
    }

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
        return isState(path) ? SummedFile.read(this, path) : super.open(path, bufferSize);
    }

    @Override
    public void copyFromLocalFile(boolean remove, boolean overwrite, Path source, Path target) throws IOException {
        FileSystem local = FileSystem.getLocal(getConf());
        if (remove || !isState(target) || !local.getFileStatus(source).isFile()) {
            super.copyFromLocalFile(remove, overwrite, source, target);
            return;
        }
        Spool content = new Spool();
        try {
            try (InputStream in = local.open(source)) {
                in.transferTo(content);
            }
            content.close();
            SummedFile.write(this, target, content, !overwrite);
        } finally {
            content.discard();
        }
    }

    @Override
    public void copyToLocalFile(boolean remove, Path source, Path target, boolean raw) throws IOException {
        if (remove || !isState(source)) {
            super.copyToLocalFile(remove, source, target, raw);
            return;
        }
        FileSystem local = raw ? FileSystem.getLocal(getConf()).getRawFileSystem() : FileSystem.getLocal(getConf());
        try (OutputStream out = local.create(target, true)) {
            SummedFile.copy(this, source, out);
        }
    }
}
