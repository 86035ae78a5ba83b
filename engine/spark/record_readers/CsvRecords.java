package headrace;

import com.univocity.parsers.common.TextParsingException;
import com.univocity.parsers.csv.CsvParser;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.csv.CSVOptions;
import org.apache.spark.sql.catalyst.csv.UnivocityParser;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.CodecStreams;
import org.apache.spark.sql.execution.datasources.HadoopFileLinesReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.csv.CSVUtils;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;

/** The records of a file of CSV, or of a part of one, in lines or with line breaks in quotes. */
final class CsvRecords implements Iterator<InternalRow> {
    private static final String OTHER_NUMBER = "the number of fields does not match the declared columns";
    private static final String NOTHING = "it has no value in any column";

    private final CSVOptions options;
    private final FolderValues folders;
    private final CsvParser tokenizer;
    private final StructField[] fields;
    private final TextValues.Reader[] readers;
    /** The declared columns that the file has, in its order. */
    private final int[] ofFile;
    /** Where the columns of a row of Spark are: declared ones, and behind them the record and the reason. */
    private final int[] places;
    private final GenericInternalRow values;
    private final GenericInternalRow row;
    private final Source source;
    private boolean isRead;
    private boolean isEnd;

    CsvRecords(StructType declared, StructType required, CSVOptions options, boolean localeIsGiven,
            FolderValues folders, PartitionedFile file, Configuration hadoop) {
        this.options = options;
        this.folders = folders;
        fields = declared.fields();
        readers = readers(declared, options, TextValues.of(options, localeIsGiven));
        values = new GenericInternalRow(fields.length);
        row = new GenericInternalRow(required.length());
        places = places(declared, required);
        tokenizer = new CsvParser(options.asParserSettings());
        folders.open(UTF8String.fromString(file.urlEncodedPath()));
        source = options.multiLine() ? new Stream(file, hadoop) : new Lines(file, hadoop);
        String[] header = options.headerFlag() && file.start() == 0 ? source.next() : null;
        String[] known = header != null || !options.headerFlag() || !folders.isAny() ? header : headerOf(file, hadoop);
        ofFile = ofFile(known);
        if (header != null && !options.enforceSchema()) {
            check(header);
        }
    }

    private static TextValues.Reader[] readers(StructType declared, CSVOptions options, TextValues texts) {
        TextValues.Reader[] readers = new TextValues.Reader[declared.length()];
        for (int i = 0; i < readers.length; i++) {
            DataType type = declared.fields()[i].dataType();
            readers[i] = type instanceof VariantType ? variants(declared.fields()[i], options) : texts.reader(type);
        }
        return readers;
    }

    private static TextValues.Reader variants(StructField field, CSVOptions options) {
        UnivocityParser spark = new UnivocityParser(new StructType(new StructField[] {field}), options);
        Function1<String, Object> converter = spark.makeConverter(field.name(), field.dataType(), true);
        return converter::apply;
    }

    private static int[] places(StructType declared, StructType required) {
        int[] places = new int[required.length()];
        for (int i = 0; i < places.length; i++) {
            String name = required.fields()[i].name();
            places[i] = name.equals(CsvFormat.RECORD) ? declared.length()
                : name.equals(CsvFormat.REASON) ? declared.length() + 1 : declared.fieldIndex(name);
        }
        return places;
    }

    private String[] headerOf(PartitionedFile file, Configuration hadoop) {
        Option<String> line = CSVUtils.readHeaderLine(file.toPath(), options, hadoop);
        return line.isEmpty() ? null : new CsvParser(options.asParserSettings()).parseLine(line.get());
    }

    /** All declared columns but those that are in names of folders only. */
    private int[] ofFile(String[] header) {
        List<Integer> found = new ArrayList<>();
        for (int i = 0; i < fields.length; i++) {
            if (!folders.isGiven(i) || (header == null ? folders.isOfPath(i) : has(header, fields[i].name()))) {
                found.add(i);
            }
        }
        return found.stream().mapToInt(Integer::intValue).toArray();
    }

    private static boolean has(String[] header, String name) {
        for (String one : header) {
            if (name.equalsIgnoreCase(one)) {
                return true;
            }
        }
        return false;
    }

    private void check(String[] header) {
        for (int i = 0; i < Math.max(header.length, ofFile.length); i++) {
            String expected = i < ofFile.length ? fields[ofFile[i]].name() : null;
            String found = i < header.length ? header[i] : null;
            if (expected == null || !expected.equalsIgnoreCase(found)) {
                List<String> names = new ArrayList<>();
                for (int place : ofFile) {
                    names.add(fields[place].name());
                }
                throw new IllegalArgumentException("the CSV header is " + String.join(", ", header)
                    + ", and the columns of the schema " + String.join(", ", names));
            }
        }
    }

    @Override
    public boolean hasNext() {
        if (!isRead && !isEnd) {
            isRead = read();
            isEnd = !isRead;
        }
        return isRead;
    }

    @Override
    public InternalRow next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        isRead = false;
        return row;
    }

    private boolean read() {
        String[] tokens;
        String reason = null;
        try {
            tokens = source.next();
            if (tokens == null && source.isEnd()) {
                return false;
            }
        } catch (TextParsingException broken) {
            if (options.multiLine()) {
                throw broken;
            }
            tokens = null;
        }
        for (int i = 0; i < fields.length; i++) {
            values.setNullAt(i);
        }
        reason = tokens == null ? "it is not CSV" : fill(tokens);
        UTF8String record = reason == null ? null : UTF8String.fromString(source.text());
        for (int i = 0; i < places.length; i++) {
            int place = places[i];
            row.update(i, place < fields.length ? values.genericGet(place) : place == fields.length ? record
                : reason == null ? null : UTF8String.fromString(reason));
        }
        return true;
    }

    /** Fill the declared columns; what is wrong with them, or null. */
    private String fill(String[] tokens) {
        String reason = null;
        boolean isAny = false;
        for (int i = 0; i < ofFile.length; i++) {
            String text = i < tokens.length ? tokens[i] : null;
            if (text == null || text.equals(options.nullValue())) {
                continue;
            }
            int place = ofFile[i];
            Object value = readers[place] == null ? null : readers[place].read(text);
            values.update(place, value);
            isAny |= value != null;
            if (value == null && reason == null) {
                reason = "'" + fields[place].name() + "' is not of type " + fields[place].dataType().simpleString()
                    + ": " + TextValues.shown(text);
            }
        }
        String ofFolders = folders.fill(values);
        if (reason == null && tokens.length != ofFile.length) {
            reason = OTHER_NUMBER;
        }
        return reason != null ? reason : ofFolders != null ? ofFolders : isAny ? null : NOTHING;
    }

    /** Gives the fields of one record after another. */
    private interface Source {
        /** The fields of the next record; null: there is none, or it has none. */
        String[] next();

        boolean isEnd();

        /** The text of the last record. */
        String text();
    }

    private final class Lines implements Source {
        private final HadoopFileLinesReader lines;
        private final Charset charset = Charset.forName(options.charset());
        private String line;

        Lines(PartitionedFile file, Configuration hadoop) {
            lines = new HadoopFileLinesReader(file, options.lineSeparatorInRead(), hadoop);
            TaskContext task = TaskContext.get();
            if (task != null) {
                task.addTaskCompletionListener((TaskContext context) -> lines.close());
            }
        }

        @Override
        public String[] next() {
            do {
                if (!lines.hasNext()) {
                    line = null;
                    return null;
                }
                Text text = lines.next();
                line = new String(text.getBytes(), 0, text.getLength(), charset);
            } while (line.trim().isEmpty()
                || options.isCommentSet() && line.startsWith(String.valueOf(options.comment())));
            return tokenizer.parseLine(line);
        }

        @Override
        public boolean isEnd() {
            return line == null;
        }

        @Override
        public String text() {
            return line;
        }
    }

    private final class Stream implements Source {
        private boolean isEnd;

        Stream(PartitionedFile file, Configuration hadoop) {
            InputStream stream = CodecStreams.createInputStreamWithCloseResource(hadoop, file.toPath());
            tokenizer.beginParsing(stream, options.charset());
        }

        @Override
        public String[] next() {
            String[] tokens = tokenizer.parseNext();
            isEnd = tokens == null;
            return tokens;
        }

        @Override
        public boolean isEnd() {
            return isEnd;
        }

        @Override
        public String text() {
            String text = tokenizer.getContext() == null ? null : tokenizer.getContext().currentParsedContent();
            return text == null ? "" : text.replaceFirst("\r?\n$", "");
        }
    }
}
