package headrace;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.DecimalNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.types.*;

/**
 * Values of change records in the form in which `JsonRecords` reads them: decimals as numbers, times as text.
 *
 * Connect's JSON has a decimal as the bytes of its digits and a time as a number; what they mean is in the schema of
 * the record only. Of a record without one nothing is guessed.
 */
final class ChangeValues {
    private static final String UNAVAILABLE = "__debezium_unavailable_value";
    private static final byte[] UNAVAILABLE_BYTES = UNAVAILABLE.getBytes(StandardCharsets.UTF_8);
    private static final long NANOS_A_SECOND = 1_000_000_000L;
    private static final int LAST_YEAR = 9999;

    private final JsonMapper mapper;

    ChangeValues(JsonMapper mapper) {
        this.mapper = mapper;
    }

    /** Why a record is bad; what follows the first colon are values of it. */
    static final class Unfit extends RuntimeException {
        Unfit(String message) {
            super(message, null, false, false);
        }
    }

    /** The schema of a field; null: there is none. */
    static JsonNode field(JsonNode schema, String name) {
        Iterable<JsonNode> fields = schema == null ? java.util.List.of() : schema.path("fields");
        for (JsonNode field : fields) {
            if (field.path("field").asText().equals(name)) {
                return field;
            }
        }
        return null;
    }


    /**
     * A value as JSON of its column.
     *
     * @param schema of the value; null: the record has none.
     * @param path of the value, for messages.
     */
    JsonNode converted(JsonNode value, JsonNode schema, DataType type, String path) throws JsonProcessingException {
        if (value.isNull()) {
            return value;
        }
        if (isUnavailable(value, schema)) {
            throw new Unfit("'" + path + "' was not sent because it did not change, and is part of a column or of the key");
        }
        if (schema == null) {
            return withoutSchema(value, type, path);
        }
        String name = schema.path("name").asText("");
        JsonNode logical = logical(value, schema, name, type, path);
        return logical != null ? logical : plain(value, schema, type, path);
    }

    private JsonNode logical(JsonNode value, JsonNode schema, String name, DataType type, String path)
            throws JsonProcessingException {
        boolean asNumber = type instanceof IntegralType;
        switch (name) {
            case "org.apache.kafka.connect.data.Decimal":
                return decimal(value, schema.path("parameters").path("scale"), type, path);
            case "io.debezium.data.VariableScaleDecimal":
                return decimal(value.path("value"), value.path("scale"), type, path);
            case "io.debezium.time.Date":
            case "org.apache.kafka.connect.data.Date":
                return asNumber ? value : date(value, path);
            case "io.debezium.time.Timestamp":
            case "org.apache.kafka.connect.data.Timestamp":
                return asNumber ? value : timestamp(value, 1_000L, path);
            case "io.debezium.time.MicroTimestamp":
                return asNumber ? value : timestamp(value, 1_000_000L, path);
            case "io.debezium.time.NanoTimestamp":
                return asNumber ? value : timestamp(value, NANOS_A_SECOND, path);
            case "io.debezium.time.Time":
            case "org.apache.kafka.connect.data.Time":
                return asNumber ? value : time(value, 1_000L, path);
            case "io.debezium.time.MicroTime":
                return asNumber ? value : time(value, 1_000_000L, path);
            case "io.debezium.time.NanoTime":
                return asNumber ? value : time(value, NANOS_A_SECOND, path);
            case "io.debezium.data.Json":
                boolean nested = type instanceof StructType || type instanceof ArrayType || type instanceof MapType
                    || type instanceof VariantType;
                return nested && value.isTextual() ? mapper.readTree(value.textValue()) : value;
            default:
                return null;
        }
    }

    private JsonNode plain(JsonNode value, JsonNode schema, DataType type, String path) throws JsonProcessingException {
        String kind = schema.path("type").asText();
        if (kind.equals("bytes") && type instanceof DecimalType) {
            throw new Unfit("'" + path + "' has bytes and no scale, and is not of type " + type.simpleString());
        }
        boolean isTime = type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType;
        if (isTime && value.isNumber()) {
            throw new Unfit("'" + path + "' has a number without a unit, and is not of type " + type.simpleString());
        }
        if (kind.equals("array") && value.isArray() && type instanceof ArrayType array) {
            return elements(value, schema.path("items"), array, path);
        } else if (kind.equals("map") && value.isObject() && type instanceof MapType map) {
            return entries(value, schema.path("values"), map, path);
        } else if (kind.equals("struct") && value.isObject() && type instanceof StructType struct) {
            return fields(value, schema, struct, path);
        }
        return value;
    }

    private JsonNode withoutSchema(JsonNode value, DataType type, String path) throws JsonProcessingException {
        if (type instanceof DecimalType && !value.isNumber()) {
            if (value.isObject() && value.size() == 2 && value.has("scale") && value.has("value")) {
                return decimal(value.get("value"), value.get("scale"), type, path);
            }
            throw new Unfit(unknown(path, type, "scale", "decimal.handling.mode=double"));
        }
        boolean isTime = type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof DateType;
        if (isTime && value.isNumber()) {
            throw new Unfit(unknown(path, type, "unit", "time.precision.mode=isostring"));
        }
        if (value.isArray() && type instanceof ArrayType array) {
            return elements(value, null, array, path);
        } else if (value.isObject() && type instanceof MapType map) {
            return entries(value, null, map, path);
        } else if (value.isObject() && type instanceof StructType struct) {
            return fields(value, null, struct, path);
        }
        return value;
    }

    private static String unknown(String path, DataType type, String what, String setting) {
        return "'" + path + "' is declared as " + type.simpleString() + ", and the record has no schema, which would have "
            + "its " + what + "; set schemas.enable=true on the converters, or " + setting + " on the connector";
    }

    private ArrayNode elements(JsonNode value, JsonNode schema, ArrayType type, String path) throws JsonProcessingException {
        ArrayNode made = mapper.createArrayNode();
        for (JsonNode element : value) {
            made.add(converted(element, schema, type.elementType(), path + "[" + made.size() + "]"));
        }
        return made;
    }

    private ObjectNode entries(JsonNode value, JsonNode schema, MapType type, String path) throws JsonProcessingException {
        ObjectNode made = mapper.createObjectNode();
        for (Iterator<Map.Entry<String, JsonNode>> all = value.fields(); all.hasNext();) {
            Map.Entry<String, JsonNode> entry = all.next();
            made.set(entry.getKey(), converted(entry.getValue(), schema, type.valueType(), path));
        }
        return made;
    }

    private ObjectNode fields(JsonNode value, JsonNode schema, StructType type, String path) throws JsonProcessingException {
        ObjectNode made = mapper.createObjectNode();
        for (StructField field : type.fields()) {
            JsonNode inner = value.path(field.name());
            if (!inner.isMissingNode()) {
                String name = path + "." + field.name();
                made.set(field.name(), converted(inner, field(schema, field.name()), field.dataType(), name));
            }
        }
        return made;
    }

    private static JsonNode decimal(JsonNode digits, JsonNode scale, DataType type, String path) {
        int places = scale.asInt(Integer.MIN_VALUE);
        byte[] bytes = digits.isTextual() ? bytes(digits.textValue()) : null;
        if (places == Integer.MIN_VALUE || bytes == null || bytes.length == 0) {
            throw new Unfit("'" + path + "' is not a decimal as Connect writes it: " + TextValues.shown(digits.toString()));
        }
        BigDecimal value = new BigDecimal(new BigInteger(bytes), places);
        return type instanceof StringType ? TextNode.valueOf(value.toPlainString()) : DecimalNode.valueOf(value);
    }

    private static byte[] bytes(String base64) {
        try {
            return Base64.getDecoder().decode(base64);
        } catch (IllegalArgumentException other) {
            return null;
        }
    }

    private static JsonNode date(JsonNode value, String path) {
        LocalDate day = value.isIntegralNumber() && value.canConvertToInt() ? LocalDate.ofEpochDay(value.longValue()) : null;
        if (day == null || day.getYear() < 1 || day.getYear() > LAST_YEAR) {
            throw notATime(value, "date", path);
        }
        return TextNode.valueOf(day.toString());
    }

    private static JsonNode timestamp(JsonNode value, long perSecond, String path) {
        if (!value.isIntegralNumber() || !value.canConvertToLong()) {
            throw notATime(value, "timestamp", path);
        }
        long seconds = Math.floorDiv(value.longValue(), perSecond);
        int nanos = (int) (Math.floorMod(value.longValue(), perSecond) * (NANOS_A_SECOND / perSecond));
        if (Math.abs(seconds) > 400_000_000_000L) {
            throw notATime(value, "timestamp", path);
        }
        LocalDateTime time = LocalDateTime.ofEpochSecond(seconds, nanos, ZoneOffset.UTC);
        if (time.getYear() < 1 || time.getYear() > LAST_YEAR) {
            throw notATime(value, "timestamp", path);
        }
        return TextNode.valueOf(time.toString());
    }

    private static JsonNode time(JsonNode value, long perSecond, String path) {
        long nanos = value.isIntegralNumber() ? value.longValue() * (NANOS_A_SECOND / perSecond) : -1;
        if (nanos < 0 || nanos >= NANOS_A_SECOND * 86_400) {
            throw notATime(value, "time", path);
        }
        return TextNode.valueOf(LocalTime.ofNanoOfDay(nanos).toString());
    }

    private static Unfit notATime(JsonNode value, String what, String path) {
        return new Unfit("'" + path + "' is not a " + what + " of the years 1 to 9999, or is infinite: "
            + TextValues.shown(value.toString()));
    }

    /** Whether a value stands for one that PostgreSQL did not send, because the column is large and did not change. */
    static boolean isUnavailable(JsonNode value, JsonNode schema) {
        if (value.isTextual()) {
            String text = value.textValue();
            boolean isBytes = schema == null || schema.path("type").asText().equals("bytes");
            return text.equals(UNAVAILABLE) || isBytes && text.equals(Base64.getEncoder().encodeToString(UNAVAILABLE_BYTES));
        }
        if (value.isArray() && value.size() == 1 && value.get(0).isTextual()) {
            return value.get(0).textValue().equals(UNAVAILABLE);
        }
        if (!value.isArray() || value.size() != UNAVAILABLE_BYTES.length) {
            return value.isObject() && value.size() == 1 && value.has(UNAVAILABLE);
        }
        for (int i = 0; i < UNAVAILABLE_BYTES.length; i++) {
            if (!value.get(i).isNumber() || value.get(i).doubleValue() != UNAVAILABLE_BYTES[i]) {
                return false;
            }
        }
        return true;
    }
}
