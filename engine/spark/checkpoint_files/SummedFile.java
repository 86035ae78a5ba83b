package headrace;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.functional.FutureIO;

/**
 * An object of the state in a bucket: written whole, with the sum of its content, and compared with both when it is read.
 *
 * The sum is in the object's own headers, so that no second object can be lost, and old objects without one are read as
 * they are. The client of Python does the same: engine/state/s3_store.py.
 */
final class SummedFile {
    /** The header of the sum, and that of the attempt that wrote the object. */
    static final String SUM = "headrace-sha256";
    static final String ATTEMPT = "headrace-attempt";

    private static final String HEADER = "fs.s3a.create.header.";
    private static final String READ_HEADER = "header.";
    private static final int ATTEMPTS = 4;
    private static final long FIRST_PAUSE_MS = 250;

    private SummedFile() {}

    /**
     * Write an object.
     *
     * @param once only if it is not there; of several that do one wins
     * @throws FileAlreadyExistsException it is there, and another attempt wrote it
     * @throws IOException it cannot be written; it may be there all the same, if the store's answer was lost
     */
    static void write(FileSystem files, Path path, Spool content, boolean once) throws IOException {
        String attempt = UUID.randomUUID().toString();
        try {
            put(files, path, content, once, attempt);
        } catch (IOException error) {
            if (!once) {
                throw unwritten(path, error);
            }
            Map<String, byte[]> there = headersAfter(error, files, path);
            if (there == null) {
                throw unwritten(path, error);
            }
            // The client repeats a request whose answer was lost, and then meets what it wrote itself.
            if (!attempt.equals(text(there, ATTEMPT))) {
                FileAlreadyExistsException taken =
                    new FileAlreadyExistsException("the checkpoint file " + path + " was written by another run");
                taken.initCause(error);
                throw taken;
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static void put(FileSystem files, Path path, Spool content, boolean once, String attempt)
        throws IOException {
        FSDataOutputStreamBuilder<FSDataOutputStream, ?> builder = files.createFile(path);
        builder.recursive().overwrite(!once);
        if (once) {
            // A file system that does not know the condition must not ignore it.
            builder.must("fs.option.create.conditional.overwrite", true);
        } else {
            builder.opt("fs.s3a.create.performance", true);
        }
        builder.opt(HEADER + SUM, content.sum()).opt(HEADER + ATTEMPT, attempt);
        FSDataOutputStream out = builder.build();
        boolean whole = false;
        try (InputStream in = content.open()) {
            in.transferTo(out);
            whole = true;
        } finally {
            if (whole) {
                out.close();
            } else {
                out.abort();
            }
        }
    }

    /** The headers of an object whose creation failed; null: it is not there, or the store does not say. */
    private static Map<String, byte[]> headersAfter(IOException failure, FileSystem files, Path path) {
        try {
            return files.getXAttrs(path);
        } catch (IOException error) {
            failure.addSuppressed(error);
            return null;
        }
    }

    static IOException unwritten(Path path, IOException error) {
        return new IOException("the checkpoint file " + path + " cannot be written: " + error.getMessage(), error);
    }

    /**
     * Read an object as a whole, again if what came is not what it is.
     *
     * @throws FileNotFoundException it is not there
     * @throws IOException it was cut off on the way, or has another content than it was written with
     */
    static FSDataInputStream read(FileSystem files, Path path) throws IOException {
        Spool spool = fetch(files, path);
        try {
            return spool.reader();
        } catch (IOException | RuntimeException error) {
            spool.discard();
            throw error;
        }
    }

    /** Read an object into a file. */
    static void copy(FileSystem files, Path path, OutputStream to) throws IOException {
        Spool spool = fetch(files, path);
        try (InputStream in = spool.open()) {
            in.transferTo(to);
        } finally {
            spool.discard();
        }
    }

    private static Spool fetch(FileSystem files, Path path) throws IOException {
        for (int attempt = 1;; attempt++) {
            try {
                return fetchOnce(files, path);
            } catch (NotAsWritten error) {
                // What fails otherwise S3A has asked for again itself.
                if (attempt == ATTEMPTS) {
                    throw error;
                }
                pause(attempt);
            }
        }
    }

    private static Spool fetchOnce(FileSystem files, Path path) throws IOException {
        Map<String, byte[]> headers = files.getXAttrs(path);
        long length = Long.parseLong(text(headers, "Content-Length"));
        String sum = text(headers, SUM);
        Spool spool = new Spool();
        try {
            receive(files, path, length, spool);
            if (spool.length() != length) {
                throw new NotAsWritten(cutOff(path, spool, length));
            }
            if (!sum.isEmpty() && !sum.equals(spool.sum())) {
                throw new NotAsWritten(path + " has another content than it was written with: "
                    + "its sum is " + spool.sum() + " and not " + sum);
            }
            return spool;
        } catch (IOException | RuntimeException error) {
            spool.discard();
            throw error;
        }
    }

    private static void receive(FileSystem files, Path path, long length, Spool spool) throws IOException {
        // With its length known, Hadoop does not ask the store for it again.
        try (InputStream in = FutureIO.awaitFuture(files.openFile(path)
                .opt("fs.option.openfile.read.policy", "whole-file")
                .optLong("fs.option.openfile.length", length)
                .build())) {
            in.transferTo(spool);
        } catch (FileNotFoundException | AccessDeniedException error) {
            throw error;
        } catch (IOException error) {
            throw new IOException(cutOff(path, spool, length) + ": " + error.getMessage(), error);
        } finally {
            spool.close();
        }
    }

    private static String cutOff(Path path, Spool spool, long length) {
        return "the object store cut " + path + " off: " + spool.length() + " of " + length + " bytes came";
    }

    /** What came is not what was written. */
    private static final class NotAsWritten extends IOException {
        private static final long serialVersionUID = 1;

        NotAsWritten(String message) {
            super(message);
        }
    }

    private static String text(Map<String, byte[]> headers, String name) {
        byte[] value = headers.get(READ_HEADER + name);
        return value == null ? "" : new String(value, StandardCharsets.UTF_8);
    }

    private static void pause(int attempt) throws IOException {
        try {
            Thread.sleep(FIRST_PAUSE_MS << attempt - 1);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new java.io.InterruptedIOException("interrupted while reading a checkpoint file");
        }
    }
}
