package headrace;

import com.fasterxml.jackson.core.Base64Variants;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonStreamContext;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.exc.InputCoercionException;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.core.util.JsonParserDelegate;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.*;
import org.apache.spark.types.variant.Variant;
import org.apache.spark.types.variant.VariantBuilder;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Records that are one JSON object each, as columns: each value as it is written, or named as one that does not fit.
 *
 * from_json reads through characters, and so makes new text of what is no string: 1.10 becomes 1.1, 1e5 100000.0. It
 * takes 128 for the tinyint -128 and rounds decimals, and lets text behind the object pass (all measured, Spark 4.1).
 */
public final class JsonRecords implements Serializable {
    private static final String NO_OBJECT = "not a JSON object; write one per line or message";
    private static final int MOST_MISFITS = 5;
    private static final long MICROS = 1_000_000L;
    // Years 1 to 9999: seconds beyond them are milliseconds, or no time at all.
    private static final long FIRST_SECOND = -62_135_596_800L;
    private static final long LAST_SECOND = 253_402_300_799L;

    private final StructType columns;
    private final HashMap<String, String> options;
    private final String zone;
    private final FolderValues folders;

    private transient JsonFactory factory;
    private transient TextValues texts;
    private transient boolean allowsSpecialNumbers;
    private transient ObjectReader root;
    private transient byte[] bytes;
    private transient List<String> misfits;
    private transient int misfitCount;

    private JsonRecords(StructType columns, Map<String, String> options, String zone, FolderValues folders) {
        this.columns = columns;
        this.options = new HashMap<>(options);
        this.zone = zone;
        this.folders = folders;
    }

    /**
     * A column of type struct with the columns in `r`, and in `reason` why the record is bad, or NULL.
     *
     * @param record binary.
     * @param file the path of its file as Spark has it in _metadata; null: it has none.
     * @param schema the declared columns as JSON.
     * @param zone of times without one.
     * @param above see FolderValues.
     */
    public static Column column(Column record, Column file, String schema, Map<String, String> options, String zone,
            int above, int ofPath) {
        StructType columns = (StructType) ((StructType) DataType.fromJson(schema)).asNullable();
        FolderValues folders = file == null ? null : new FolderValues(columns, above, ofPath, zone);
        JsonRecords reader = new JsonRecords(columns, options, zone, folders);
        if (file == null) {
            return Readers.column(reader, columns, List.of(ExpressionUtils.expression(record)),
                List.of(DataTypes.BinaryType));
        }
        Expression[] arguments = {ExpressionUtils.expression(record), ExpressionUtils.expression(file)};
        return Readers.column(reader, columns, List.of(arguments), List.of(DataTypes.BinaryType, DataTypes.StringType));
    }

    /** Read a record of a file. */
    public InternalRow read(byte[] record, UTF8String file) {
        folders.open(file);
        return read(record);
    }

    /** Read a record. */
    public InternalRow read(byte[] record) {
        if (root == null) {
            prepare();
        }
        GenericInternalRow row = new GenericInternalRow(columns.length());
        String reason = reason(record, row);
        return Readers.result(row, reason);
    }

    private void prepare() {
        JSONOptions parsed = new JSONOptions(
            scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(options)), zone, "");
        factory = parsed.buildJsonFactory();
        texts = TextValues.of(parsed);
        allowsSpecialNumbers = parsed.allowNonNumericNumbers();
        misfits = new ArrayList<>();
        root = new ObjectReader(columns);
    }

    private String reason(byte[] record, GenericInternalRow row) {
        if (record == null) {
            return "it has no value";
        }
        if (!UTF8String.fromBytes(record).isValid()) {
            return "it is not UTF-8";
        }
        boolean hasMark = record.length > 2 && record[0] == (byte) 0xEF && record[1] == (byte) 0xBB
            && record[2] == (byte) 0xBF;
        bytes = hasMark ? Arrays.copyOfRange(record, 3, record.length) : record;
        // Jackson would take a record that begins with zeros for one in another encoding.
        for (int i = 0; i < Math.min(4, bytes.length); i++) {
            if (bytes[i] == 0) {
                return NO_OBJECT;
            }
        }
        misfits.clear();
        misfitCount = 0;
        try (JsonParser parser = factory.createParser(bytes)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                return NO_OBJECT;
            }
            boolean isAny = root.fill(parser, row);
            if (parser.nextToken() != null) {
                return NO_OBJECT;
            }
            String ofFolder = folders == null ? null : folders.fill(row);
            if (misfitCount > 0) {
                int more = misfitCount - misfits.size();
                return String.join("; ", misfits) + (more > 0 ? "; and " + more + " more" : "");
            }
            return ofFolder != null ? ofFolder : isAny ? null : "it has no value for any declared column";
        } catch (StreamConstraintsException limit) {
            return "it is beyond what is read of JSON: " + limit.getOriginalMessage();
        } catch (IOException other) {
            return NO_OBJECT;
        }
    }

    /** Note that a value does not fit, and go on behind it. */
    private Object misfit(JsonParser parser, DataType type) throws IOException {
        return misfit(parser, type, new Place(parser));
    }

    private Object misfit(JsonParser parser, DataType type, Place place) throws IOException {
        place.skip(parser);
        misfitCount++;
        if (misfits.size() < MOST_MISFITS) {
            int end = (int) parser.currentLocation().getByteOffset();
            String text = new String(bytes, place.begin, end - place.begin, StandardCharsets.UTF_8);
            misfits.add("'" + place.path + "' is not of type " + type.simpleString() + ": " + TextValues.shown(text));
        }
        return null;
    }

    /** Where a value is, which a parser has just begun to read. */
    private static final class Place {
        private final int begin;
        private final int depth;
        private final String path;

        Place(JsonParser parser) {
            begin = (int) parser.currentTokenLocation().getByteOffset();
            JsonStreamContext context = parser.getParsingContext();
            if (parser.currentToken().isStructStart()) {
                context = context.getParent();
            }
            depth = context.getNestingDepth();
            path = path(context);
        }

        /** Go to the value's last token. */
        void skip(JsonParser parser) throws IOException {
            while (parser.getParsingContext().getNestingDepth() > depth) {
                parser.nextToken();
            }
            parser.finishToken();
        }
    }

    private static String path(JsonStreamContext inner) {
        ArrayDeque<String> parts = new ArrayDeque<>();
        for (JsonStreamContext context = inner; !context.inRoot(); context = context.getParent()) {
            parts.push(context.inArray() ? "[" + context.getCurrentIndex() + "]" : "." + context.getCurrentName());
        }
        return String.join("", parts).substring(1);
    }

    /** Reads the value at which a parser is, which is not null, and leaves it at the value's last token. */
    private interface Reader {
        Object read(JsonParser parser, JsonToken token) throws IOException;
    }

    private static Object value(Reader reader, JsonParser parser) throws IOException {
        JsonToken token = parser.currentToken();
        return token == JsonToken.VALUE_NULL ? null : reader.read(parser, token);
    }

    private Reader reader(DataType type) {
        if (type instanceof StructType struct) {
            ObjectReader inner = new ObjectReader(struct);
            return (parser, token) -> {
                if (token != JsonToken.START_OBJECT) {
                    return misfit(parser, type);
                }
                GenericInternalRow row = new GenericInternalRow(struct.length());
                inner.fill(parser, row);
                return row;
            };
        } else if (type instanceof ArrayType array) {
            Reader element = reader(array.elementType());
            return (parser, token) -> token == JsonToken.START_ARRAY ? array(parser, element) : misfit(parser, type);
        } else if (type instanceof MapType map) {
            TextValues.Reader key = texts.reader(map.keyType());
            Reader value = reader(map.valueType());
            return (parser, token) -> token == JsonToken.START_OBJECT && key != null ? map(parser, map, key, value)
                : misfit(parser, type);
        } else if (type instanceof StringType) {
            return this::string;
        } else if (type instanceof VariantType) {
            return this::variant;
        } else if (type instanceof BooleanType) {
            return (parser, token) -> token == JsonToken.VALUE_TRUE ? Boolean.TRUE
                : token == JsonToken.VALUE_FALSE ? Boolean.FALSE : misfit(parser, type);
        } else if (type instanceof BinaryType) {
            return this::binary;
        } else if (type instanceof DecimalType decimal) {
            return decimals(decimal);
        } else if (type instanceof NumericType) {
            return type instanceof FractionalType ? floating(type) : whole(type);
        }
        return ofText(type);
    }

    /** Reads types that JSON has as strings. */
    private Reader ofText(DataType type) {
        TextValues.Reader reader = texts.reader(type);
        boolean countsSeconds = type instanceof TimestampType;
        return (parser, token) -> {
            Object value = null;
            if (token == JsonToken.VALUE_STRING && reader != null) {
                value = reader.read(parser.getText());
            } else if (token == JsonToken.VALUE_NUMBER_INT && countsSeconds) {
                Long seconds = whole(parser, FIRST_SECOND, LAST_SECOND);
                value = seconds == null ? null : (Object) (seconds * MICROS);
            }
            return value == null ? misfit(parser, type) : value;
        };
    }

    private static Long whole(JsonParser parser, long least, long most) throws IOException {
        try {
            long value = parser.getLongValue();
            return value < least || value > most ? null : (Long) value;
        } catch (InputCoercionException tooLong) {
            return null;
        }
    }

    private Reader whole(DataType type) {
        long most = type instanceof ByteType ? Byte.MAX_VALUE : type instanceof ShortType ? Short.MAX_VALUE
            : type instanceof IntegerType ? Integer.MAX_VALUE : Long.MAX_VALUE;
        return (parser, token) -> {
            Long value = token == JsonToken.VALUE_NUMBER_INT ? whole(parser, -most - 1, most) : null;
            if (value == null) {
                return misfit(parser, type);
            } else if (type instanceof IntegerType) {
                return value.intValue();
            } else if (type instanceof LongType) {
                return value;
            }
            return type instanceof ByteType ? (Object) value.byteValue() : (Object) value.shortValue();
        };
    }

    private Reader floating(DataType type) {
        boolean isDouble = type instanceof DoubleType;
        return (parser, token) -> {
            Double value = null;
            if (token == JsonToken.VALUE_NUMBER_INT || token == JsonToken.VALUE_NUMBER_FLOAT) {
                // A float is not read as a double first, and rounded twice.
                value = isDouble ? parser.getDoubleValue() : (double) parser.getFloatValue();
                if (!Double.isFinite(value) && isFinite(parser.getText())
                        || value == 0 && token == JsonToken.VALUE_NUMBER_FLOAT && !TextValues.isZero(parser.getText())) {
                    value = null;
                }
            } else if (token == JsonToken.VALUE_STRING && allowsSpecialNumbers) {
                value = special(parser.getText());
            }
            return value == null ? misfit(parser, type) : isDouble ? (Object) value : (Object) value.floatValue();
        };
    }

    /** Whether a number is written in digits. */
    private static boolean isFinite(String text) {
        return text.endsWith(".") || Character.isDigit(text.charAt(text.length() - 1));
    }

    private static Double special(String text) {
        return switch (text) {
            case "NaN" -> Double.NaN;
            case "+INF", "+Infinity", "Infinity" -> Double.POSITIVE_INFINITY;
            case "-INF", "-Infinity" -> Double.NEGATIVE_INFINITY;
            default -> null;
        };
    }

    private Reader decimals(DecimalType type) {
        TextValues.Reader text = texts.reader(type);
        return (parser, token) -> {
            Object value = null;
            if (token == JsonToken.VALUE_STRING) {
                value = text.read(parser.getText());
            } else if (token == JsonToken.VALUE_NUMBER_INT
                    || token == JsonToken.VALUE_NUMBER_FLOAT && isFinite(parser.getText())) {
                value = TextValues.fitted(parser.getDecimalValue(), type);
            }
            return value == null ? misfit(parser, type) : value;
        };
    }

    private Object binary(JsonParser parser, JsonToken token) throws IOException {
        if (token != JsonToken.VALUE_STRING) {
            return misfit(parser, DataTypes.BinaryType);
        }
        try {
            return Base64Variants.getDefaultVariant().decode(parser.getText());
        } catch (IllegalArgumentException other) {
            return misfit(parser, DataTypes.BinaryType);
        }
    }

    /** The text of a string, or what is written where another value is. */
    private Object string(JsonParser parser, JsonToken token) throws IOException {
        if (token == JsonToken.VALUE_STRING) {
            UTF8String text = encoded(parser.getTextCharacters(), parser.getTextOffset(), parser.getTextLength());
            return text == null ? misfit(parser, DataTypes.StringType) : text;
        }
        int begin = (int) parser.currentTokenLocation().getByteOffset();
        parser.skipChildren();
        int end = (int) parser.currentLocation().getByteOffset();
        return UTF8String.fromBytes(bytes, begin, end - begin);
    }

    /** A text in UTF-8; null: it has half of a pair of surrogates ("\ud800"), which no UTF-8 has. */
    private static UTF8String encoded(char[] characters, int offset, int length) {
        byte[] ascii = new byte[length];
        for (int i = 0; i < length; i++) {
            char c = characters[offset + i];
            if (c >= 0x80) {
                return encoded(new String(characters, offset, length));
            }
            ascii[i] = (byte) c;
        }
        return UTF8String.fromBytes(ascii);
    }

    private static UTF8String encoded(String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))) {
                i++;
            } else if (Character.isSurrogate(c)) {
                return null;
            }
        }
        return UTF8String.fromString(text);
    }

    private Object array(JsonParser parser, Reader element) throws IOException {
        ArrayList<Object> values = new ArrayList<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            values.add(value(element, parser));
        }
        return new GenericArrayData(values.toArray());
    }

    /** Where a key is written twice, the last one counts, as in an object. */
    private Object map(JsonParser parser, MapType type, TextValues.Reader key, Reader value) throws IOException {
        LinkedHashMap<Object, Object> entries = new LinkedHashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.currentName();
            Object read = encoded(name) == null ? null : key.read(name);
            parser.nextToken();
            if (read == null) {
                misfit(parser, type);
            } else {
                entries.put(read, value(value, parser));
            }
        }
        return ArrayBasedMapData.apply(entries.keySet().toArray(), entries.values().toArray());
    }

    private Object variant(JsonParser parser, JsonToken token) throws IOException {
        Place place = new Place(parser);
        try {
            Variant read = VariantBuilder.parseJson(new VariantTokens(parser), false);
            return new VariantVal(read.getValue(), read.getMetadata());
        } catch (RuntimeException other) {
            // It has a key twice, or is too large, or is one of the two below.
            return misfit(parser, DataTypes.VariantType, place);
        }
    }

    /** Tokens without those that a variant would hold as something else: numbers beyond a double, half surrogates. */
    private static final class VariantTokens extends JsonParserDelegate {
        VariantTokens(JsonParser parser) {
            super(parser);
        }

        @Override
        public double getDoubleValue() throws IOException {
            double value = super.getDoubleValue();
            String text = delegate.getText();
            if (!Double.isFinite(value) && isFinite(text) || value == 0 && !TextValues.isZero(text)) {
                throw new ArithmeticException();
            }
            return value;
        }

        @Override
        public String getText() throws IOException {
            return whole(super.getText());
        }

        @Override
        public String currentName() throws IOException {
            return whole(super.currentName());
        }

        private static String whole(String text) {
            if (text != null && encoded(text) == null) {
                throw new IllegalArgumentException();
            }
            return text;
        }
    }

    /** Reads the fields of an object. */
    private final class ObjectReader {
        private final Map<String, Integer> places = new HashMap<>();
        private final Reader[] readers;

        ObjectReader(StructType type) {
            StructField[] fields = type.fields();
            readers = new Reader[fields.length];
            for (int i = 0; i < fields.length; i++) {
                places.put(fields[i].name(), i);
                readers[i] = reader(fields[i].dataType());
            }
        }

        /** Fill a row from the object at whose beginning a parser is; whether there is a value for any of its columns. */
        boolean fill(JsonParser parser, GenericInternalRow row) throws IOException {
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                Integer place = places.get(parser.currentName());
                parser.nextToken();
                if (place == null) {
                    parser.skipChildren();
                } else {
                    row.update(place, value(readers[place], parser));
                }
            }
            for (int i = 0; i < readers.length; i++) {
                if (!row.isNullAt(i)) {
                    return true;
                }
            }
            return false;
        }
    }
}
