package headrace;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Change records of Debezium in JSON, each as the row of its table: a JSON object for `JsonRecords`, the operation, the
 * position by which the changes of a key are ordered, and the time of the change.
 *
 * The values of a key are those of the record's key: `before` of a delete has placeholders beside them, and may lack
 * columns. Values are converted by the schema of their own record, as scale and unit may change from one to the next.
 */
public final class ChangeRecords implements Serializable {
    private static final String NO_OBJECT = "not a JSON object";
    private static final String ROUTED = "__dbz__physicalTableIdentifier";
    private static final long THOUSAND = 1000L;
    private static final StructType RESULT = new StructType()
        .add("op", DataTypes.StringType)
        .add("position", DataTypes.StringType)
        .add("changed", DataTypes.LongType)
        .add("row", DataTypes.BinaryType)
        .add("skipped", DataTypes.StringType)
        .add("unavailable", DataTypes.createArrayType(DataTypes.StringType));

    private final StructType columns;
    private final List<String> keys;
    private final boolean appliesTruncate;
    private final boolean flattened;
    private final boolean inLines;

    private transient JsonMapper mapper;
    private transient ChangeValues values;

    private ChangeRecords(StructType columns, List<String> keys, boolean appliesTruncate, boolean flattened,
            boolean inLines) {
        this.columns = columns;
        this.keys = keys;
        this.appliesTruncate = appliesTruncate;
        this.flattened = flattened;
        this.inLines = inLines;
    }

    /**
     * A column of type struct with RESULT in `r`, and in `reason` why the record is bad, or NULL.
     *
     * @param key binary; not looked at if `inLines`.
     * @param value binary.
     * @param schema the declared columns as JSON.
     * @param keys the names of the columns of the key; empty: the table has no key.
     * @param appliesTruncate whether a TRUNCATE is a row of operation `t`, without values, and not bad.
     * @param flattened whether values are rows, as ExtractNewRecordState leaves them, and not changes; the records then
     *     have neither a position nor a time.
     * @param inLines whether the value is an object of `key` and `value`, as files have them.
     */
    public static Column column(Column key, Column value, String schema, List<String> keys, boolean appliesTruncate,
            boolean flattened, boolean inLines) {
        StructType columns = (StructType) ((StructType) DataType.fromJson(schema)).asNullable();
        ChangeRecords reader = new ChangeRecords(columns, List.copyOf(keys), appliesTruncate, flattened, inLines);
        return Readers.column(reader, RESULT, List.of(ExpressionUtils.expression(key), ExpressionUtils.expression(value)),
            List.of(DataTypes.BinaryType, DataTypes.BinaryType));
    }

    /** Read a record. */
    public InternalRow read(byte[] key, byte[] value) {
        if (mapper == null) {
            mapper = JsonMapper.builder()
                .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS, DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                .nodeFactory(JsonNodeFactory.withExactBigDecimals(true)).build();
            values = new ChangeValues(mapper);
        }
        GenericInternalRow row = new GenericInternalRow(RESULT.length());
        String reason = null;
        try {
            fill(key, value, row);
        } catch (ChangeValues.Unfit unfit) {
            reason = unfit.getMessage();
        } catch (JsonProcessingException other) {
            reason = NO_OBJECT;
        } catch (IOException other) {
            throw new IllegalStateException(other);
        }
        return Readers.result(row, reason);
    }

    private void fill(byte[] keyBytes, byte[] valueBytes, GenericInternalRow row) throws IOException {
        JsonNode key;
        JsonNode value;
        if (inLines) {
            JsonNode line = parsed(valueBytes);
            if (!line.isObject() || !line.has("key") || !line.has("value")) {
                throw new ChangeValues.Unfit("a line must be an object with 'key' and 'value'");
            }
            key = line.get("key");
            value = line.get("value");
        } else {
            key = parsed(keyBytes);
            value = parsed(valueBytes);
        }
        Part change = Part.of(value);
        if (flattened) {
            fillFlattened(Part.of(key), change, row);
            return;
        }
        if (change.payload.isNull()) {
            if (Part.of(key).payload.isNull()) {
                throw new ChangeValues.Unfit("it has neither a key nor a value");
            }
            row.update(4, UTF8String.fromString("tombstone"));
            return;
        }
        if (!change.payload.isObject()) {
            throw new ChangeValues.Unfit(NO_OBJECT);
        }
        String skipped = skipped(change.payload);
        if (skipped != null) {
            row.update(4, UTF8String.fromString(skipped));
            return;
        }
        fill(Part.of(key), change, row);
    }

    private JsonNode parsed(byte[] bytes) throws IOException {
        if (bytes == null) {
            return JsonNodeFactory.instance.nullNode();
        }
        if (!UTF8String.fromBytes(bytes).isValid()) {
            throw new ChangeValues.Unfit("it is not UTF-8");
        }
        return mapper.readTree(bytes);
    }

    /** What a record is that is no change of a row; null: it is one, or none of those that Debezium writes. */
    private static String skipped(JsonNode payload) {
        String op = payload.path("op").asText("");
        if (op.equals("m")) {
            return "message";
        } else if (payload.has("op")) {
            return null;
        } else if (payload.has("ddl") || payload.has("tableChanges")) {
            return "schema change";
        } else if (payload.has("status") && payload.has("event_count") && payload.has("id")) {
            return "transaction";
        }
        boolean hasTimesOnly = payload.has("ts_ms");
        for (Iterator<String> names = payload.fieldNames(); names.hasNext();) {
            hasTimesOnly &= names.next().startsWith("ts_");
        }
        return hasTimesOnly ? "heartbeat" : null;
    }

    private void fill(Part key, Part change, GenericInternalRow row) throws IOException {
        JsonNode payload = change.payload;
        String op = payload.path("op").asText("");
        if (!payload.has("op") || !payload.path("source").isObject()) {
            throw new ChangeValues.Unfit("it is not a change record of Debezium: it has no 'op' and 'source'");
        } else if (op.equals("t") && !appliesTruncate) {
            throw new ChangeValues.Unfit("the table was truncated, and 'on_truncate' is 'reject'");
        } else if (!Set.of("c", "u", "d", "r", "t").contains(op)) {
            throw new ChangeValues.Unfit("unknown operation: " + op);
        } else if (keys.isEmpty() && !Set.of("c", "r").contains(op)) {
            throw new ChangeValues.Unfit("a row of a table without a key was changed or deleted");
        }
        ObjectNode read = mapper.createObjectNode();
        if (!op.equals("d") && !op.equals("t")) {
            Part after = change.field("after");
            if (!after.payload.isObject()) {
                throw new ChangeValues.Unfit("it has no 'after'");
            }
            row.update(5, convertRow(after, read));
        }
        if (!keys.isEmpty() && !op.equals("t")) {
            convertKey(key, read);
        }
        JsonNode source = payload.get("source");
        row.update(0, UTF8String.fromString(op));
        row.update(1, UTF8String.fromString(ChangePositions.position(source, op)));
        row.update(2, changed(source));
        row.update(3, mapper.writeValueAsBytes(read));
    }

    /** A row as ExtractNewRecordState leaves it: a deleted one has no value, or `__deleted`. */
    private void fillFlattened(Part key, Part change, GenericInternalRow row) throws IOException {
        JsonNode payload = change.payload;
        if (payload.isNull() && key.payload.isNull()) {
            throw new ChangeValues.Unfit("it has neither a key nor a value");
        } else if (!payload.isNull() && !payload.isObject()) {
            throw new ChangeValues.Unfit(NO_OBJECT);
        } else if (payload.has("op") && payload.has("after") && payload.path("source").isObject()) {
            throw new ChangeValues.Unfit("it is a change record that is not flattened");
        }
        String op = payload.path("__op").isTextual() ? payload.get("__op").textValue() : "u";
        op = payload.isNull() || payload.path("__deleted").asText().equals("true") ? "d" : op;
        if (!Set.of("c", "u", "d", "r").contains(op)) {
            throw new ChangeValues.Unfit("unknown operation: " + op);
        }
        ObjectNode read = mapper.createObjectNode();
        if (!op.equals("d")) {
            row.update(5, convertRow(change, read));
        }
        convertKey(key, read);
        row.update(0, UTF8String.fromString(op));
        row.update(3, mapper.writeValueAsBytes(read));
    }

    private void convertKey(Part key, ObjectNode read) throws IOException {
        checkKey(key);
        for (StructField column : columns.fields()) {
            if (keys.contains(column.name())) {
                convert(key, column, read);
            }
        }
    }

    private void checkKey(Part key) {
        if (!key.payload.isObject()) {
            throw new ChangeValues.Unfit(key.payload.isNull() ? "it has no key" : "its key is not an object");
        }
        Set<String> missing = new LinkedHashSet<>(keys);
        Set<String> more = new LinkedHashSet<>();
        for (Iterator<String> names = key.payload.fieldNames(); names.hasNext();) {
            String name = names.next();
            if (!missing.remove(name) && !name.equals(ROUTED)) {
                more.add(name);
            }
        }
        if (!missing.isEmpty() || !more.isEmpty()) {
            Set<String> names = new LinkedHashSet<>();
            key.payload.fieldNames().forEachRemaining(names::add);
            throw new ChangeValues.Unfit("the key of the record has the columns " + String.join(", ", names)
                + " and not " + String.join(", ", keys));
        }
    }

    /** Convert the columns of a row; the result has the names of those that were not sent, or is null. */
    private GenericArrayData convertRow(Part after, ObjectNode read) throws IOException {
        List<Object> unavailable = new ArrayList<>();
        for (StructField column : columns.fields()) {
            Part field = after.field(column.name());
            if (!keys.contains(column.name()) && ChangeValues.isUnavailable(field.payload, field.schema)) {
                unavailable.add(UTF8String.fromString(column.name()));
            } else {
                convert(after, column, read);
            }
        }
        return unavailable.isEmpty() ? null : new GenericArrayData(unavailable.toArray());
    }

    private void convert(Part part, StructField column, ObjectNode read) throws IOException {
        JsonNode value = part.payload.path(column.name());
        if (!value.isMissingNode()) {
            Part field = part.field(column.name());
            read.set(column.name(), values.converted(value, field.schema, column.dataType(), column.name()));
        }
    }

    private static Long changed(JsonNode source) {
        if (source.path("ts_us").isIntegralNumber()) {
            return source.get("ts_us").longValue();
        }
        return source.path("ts_ms").isIntegralNumber() ? (Long) (source.get("ts_ms").longValue() * THOUSAND) : null;
    }

    /** A value and the schema that its record has of it; without one (`schemas.enable=false`) that is null. */
    private record Part(JsonNode payload, JsonNode schema) {
        static Part of(JsonNode node) {
            boolean wrapped = node.isObject() && node.size() == 2 && node.has("schema") && node.has("payload");
            JsonNode schema = wrapped && node.get("schema").isObject() ? node.get("schema") : null;
            return new Part(wrapped ? node.get("payload") : node, schema);
        }

        Part field(String name) {
            return new Part(payload.path(name), ChangeValues.field(schema, name));
        }
    }
}
