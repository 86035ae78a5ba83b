package headrace;

import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Columns whose values are in the names of folders, as Hive writes them: dt=2024-05-01/hour=01/a.json.
 *
 * Folders above the source's path do not count. A folder of the path itself gives a column only where the file has no
 * value for it: source=web/ may be the name of a place, and the records have a column of that name. Below the path, a
 * file that has another value is read wrong either way.
 */
final class FolderValues implements Serializable {
    static final String NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__";

    private final StructField[] fields;
    private final int above;
    private final int ofPath;
    private final String zone;
    private final Map<String, Integer> places = new HashMap<>();

    private transient TextValues.Reader[] readers;
    // Of the file that was read last.
    private transient UTF8String file;
    private transient boolean isAny;
    private transient boolean[] given;
    private transient boolean[] isOfPath;
    private transient Object[] values;
    private transient String misfit;

    /**
     * @param columns the declared columns.
     * @param above how many folders of a file's path are above the source's.
     * @param ofPath how many behind these are the source's own path.
     */
    FolderValues(StructType columns, int above, int ofPath, String zone) {
        fields = columns.fields();
        this.above = above;
        this.ofPath = ofPath;
        this.zone = zone;
        for (int i = 0; i < fields.length; i++) {
            places.put(fields[i].name().toLowerCase(Locale.ROOT), i);
        }
    }

    private void prepare() {
        TextValues texts = TextValues.of(DateTimeUtils.getZoneId(zone));
        readers = new TextValues.Reader[fields.length];
        for (int i = 0; i < fields.length; i++) {
            readers[i] = texts.reader(fields[i].dataType());
        }
        given = new boolean[fields.length];
        isOfPath = new boolean[fields.length];
        values = new Object[fields.length];
    }

    /** Read the folders of a file. @param path as Spark has it in _metadata: a URI in which everything is encoded. */
    void open(UTF8String path) {
        if (path.equals(file)) {
            return;
        }
        if (readers == null) {
            prepare();
        }
        // Spark's text is a part of a row, which is written over.
        file = path.copy();
        isAny = false;
        misfit = null;
        Arrays.fill(given, false);
        String[] parts = folders(path.toString());
        for (int i = above; i < parts.length - 1; i++) {
            int sign = parts[i].indexOf('=');
            if (sign > 0) {
                String part = decoded(parts[i]);
                sign = part.indexOf('=');
                take(decoded(part.substring(0, sign)), decoded(part.substring(sign + 1)), i < above + ofPath);
            }
        }
    }

    /** Whether the file's folders give a column. */
    boolean isGiven(int column) {
        return given[column];
    }

    /** Whether it is the source's own path that gives it. */
    boolean isOfPath(int column) {
        return isOfPath[column];
    }

    boolean isAny() {
        return isAny;
    }

    /** Set the columns of a row; what does not fit, in a few words, or null. */
    String fill(GenericInternalRow row) {
        if (!isAny) {
            return null;
        }
        String found = misfit;
        for (int i = 0; i < fields.length; i++) {
            if (!given[i]) {
                continue;
            }
            Object own = row.isNullAt(i) ? null : row.genericGet(i);
            if (own == null) {
                row.update(i, values[i]);
            } else if (!isOfPath[i] && !isEqual(own, values[i])) {
                found = "'" + fields[i].name() + "' has one value in the file and another in the name of its folder";
            }
        }
        return found;
    }

    private void take(String name, String text, boolean ofPath) {
        Integer place = places.get(name.toLowerCase(Locale.ROOT));
        if (place == null) {
            return;
        }
        Object value = null;
        if (!text.equals(NULL_FOLDER)) {
            value = readers[place] == null ? null : readers[place].read(text);
            if (value == null) {
                misfit = "'" + fields[place].name() + "' is not of type " + fields[place].dataType().simpleString()
                    + " in the name of a folder: " + TextValues.shown(text);
            }
        }
        if (given[place] && !isOfPath[place] && !isEqual(value, values[place])) {
            misfit = "'" + fields[place].name() + "' has two values in the names of folders";
        }
        isAny = true;
        given[place] = true;
        isOfPath[place] = ofPath;
        values[place] = value;
    }

    private static boolean isEqual(Object one, Object other) {
        return one instanceof byte[] bytes ? Arrays.equals(bytes, (byte[]) other) : Objects.equals(one, other);
    }

    /** The parts of a path behind scheme and host. */
    private static String[] folders(String path) {
        int host = path.indexOf("://");
        int begin = host >= 0 ? path.indexOf('/', host + 3) : path.indexOf('/');
        return begin < 0 ? new String[0] : path.substring(begin + 1).split("/", -1);
    }

    /**
     * A text with each %XX as a byte of UTF-8. So a URI has it, and so PyArrow writes folders; Spark and Hive encode
     * characters of ASCII only.
     */
    private static String decoded(String text) {
        if (text.indexOf('%') < 0) {
            return text;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] all = text.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < all.length; i++) {
            int high = all[i] == '%' && i + 2 < all.length ? Character.digit(all[i + 1], 16) : -1;
            int low = high >= 0 ? Character.digit(all[i + 2], 16) : -1;
            bytes.write(low < 0 ? all[i] : high * 16 + low);
            i += low < 0 ? 0 : 2;
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }
}
