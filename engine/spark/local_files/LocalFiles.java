package headrace;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, which sets modes by a system call.
 *
 * Without its own machine code, which PySpark does not ship, Hadoop starts a process of chmod for each file and folder
 * that it makes. All else is Hadoop's: files of sums, renames, links, and when which mode is set.
 */
public final class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    /** The same without files of sums. */
    static final class Raw extends RawLocalFileSystem {
        private static final int OWNER_READ = 0400;

        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            File file = pathToFile(path);
            if (permission.getStickyBit()) {
                // Java has no name for it.
                super.setPermission(path, permission);
                return;
            }
            try {
                Files.setPosixFilePermissions(file.toPath(), permissions(permission.toShort()));
            } catch (UnsupportedOperationException noModes) {
                // A disk without modes: what chmod says of it.
                super.setPermission(path, permission);
            }
        }

        /** The constants are declared in the order of the bits, the owner's read first. */
        private static Set<PosixFilePermission> permissions(int mode) {
            Set<PosixFilePermission> set = EnumSet.noneOf(PosixFilePermission.class);
            for (PosixFilePermission permission : PosixFilePermission.values()) {
                if ((mode & OWNER_READ >> permission.ordinal()) != 0) {
                    set.add(permission);
                }
            }
            return set;
        }
    }
}
