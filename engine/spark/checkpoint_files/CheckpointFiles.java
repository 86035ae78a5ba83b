package headrace;

import java.io.File;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * The files of Spark's checkpoints: there whole or not at all, created by one of several, and what fails is an error.
 *
 * Spark's own managers ask whether a file is there and write it then, so that a process that slept in between overwrites
 * what another one wrote; the one for object stores logs most errors of a write and continues (both Spark 4.1.4).
 */
public final class CheckpointFiles extends FileSystemBasedCheckpointFileManager {
    public CheckpointFiles(Path path, Configuration conf) {
        super(path, conf);
    }

    private boolean onDisk() {
        return fs() instanceof LocalFileSystem;
    }

    @Override
    public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
        return onDisk() ? super.createAtomic(path, overwrite) : new Written(path, overwrite, new Spool());
    }

    @Override
    public FSDataOutputStream createTempFile(Path path) {
        try {
            return fs().create(path, true);
        } catch (IOException error) {
            throw Thrown.as(SummedFile.unwritten(path, error));
        }
    }

    @Override
    public FSDataInputStream open(Path path) {
        try {
            return onDisk() ? fs().open(path) : SummedFile.read(fs(), path);
        } catch (IOException error) {
            throw Thrown.as(error);
        }
    }

    /** Give a whole file its name: by a link, which fails if the name is taken, where it must not be. */
    @Override
    public void renameTempFile(Path source, Path target, boolean overwrite) {
        try {
            if (!overwrite && fs() instanceof LocalFileSystem && linked((LocalFileSystem) fs(), source, target)) {
                return;
            }
            super.renameTempFile(source, target, overwrite);
            if (overwrite && fs().exists(source)) {
                // Spark takes a rename that failed for one that was done if the target is there.
                throw new IOException("the checkpoint file " + target + " cannot be written: it is not replaced");
            }
        } catch (IOException error) {
            throw Thrown.as(error);
        }
    }

    private static boolean linked(LocalFileSystem files, Path source, Path target) throws IOException {
        File from = files.pathToFile(source);
        try {
            Files.createLink(files.pathToFile(target).toPath(), from.toPath());
        } catch (java.nio.file.FileAlreadyExistsException error) {
            // Spark forgets it.
            files.delete(source, false);
            throw new FileAlreadyExistsException("the checkpoint file " + target + " was written by another run");
        } catch (FileSystemException | UnsupportedOperationException error) {
            // A disk without links, or one on which nothing can be written: a rename says which.
            return false;
        }
        // A kill in between leaves a file without its sum, which is read as it is.
        Path sum = files.getChecksumFile(source);
        if (files.getRaw().exists(sum)) {
            files.getRaw().rename(sum, files.getChecksumFile(target));
        }
        files.getRaw().delete(source, false);
        return true;
    }

    /** A file that is written when it is closed. */
    private final class Written extends CheckpointFileManager.CancellableFSDataOutputStream {
        private final Path path;
        private final boolean overwrite;
        private final Spool content;
        private boolean ended;

        Written(Path path, boolean overwrite, Spool content) {
            super(content);
            this.path = path;
            this.overwrite = overwrite;
            this.content = content;
        }

        @Override
        public synchronized void close() throws IOException {
            if (ended) {
                return;
            }
            ended = true;
            try {
                super.close();
                SummedFile.write(fs(), path, content, !overwrite);
            } finally {
                content.discard();
            }
        }

        @Override
        public synchronized void cancel() {
            ended = true;
            content.discard();
        }
    }
}
