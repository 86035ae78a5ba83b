package headrace;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Locale;

/**
 * The position of a change of Debezium: a text that is greater for the later one of two changes of a key.
 *
 * It begins with 0 for a row of a snapshot and 1 for a change that was streamed. A transaction that is open while a
 * snapshot is taken has a lower position in the log than the snapshot, and is later all the same (measured, Debezium
 * 3.6). A row of an incremental snapshot counts as streamed: the connector puts it between the changes of its key.
 */
final class ChangePositions {
    private ChangePositions() {
    }

    static String position(JsonNode source, String op) {
        String connector = source.path("connector").asText("");
        String rank = isSnapshot(source, op) ? "0" : "1";
        return switch (connector) {
            case "postgresql" -> String.join("-", rank, number(source, "lsn"));
            case "mysql", "mariadb" ->
                String.join("-", rank, file(source), number(source, "pos"), number(source, "row"));
            // A row of a snapshot has no position in these logs.
            case "sqlserver" -> rank.equals("0") ? rank
                : String.join("-", rank, hexadecimal(source, "change_lsn"), number(source, "event_serial_no"));
            case "oracle" -> rank.equals("0") ? rank
                : String.join("-", rank, scn(source), hexadecimal(source, "rs_id"), number(source, "ssn"));
            default -> throw new ChangeValues.Unfit(
                "change records of this connector are not supported in this version: " + connector);
        };
    }

    private static boolean isSnapshot(JsonNode source, String op) {
        JsonNode snapshot = source.path("snapshot");
        if (snapshot.isMissingNode() || snapshot.isNull()) {
            // `replace.null.with.default=false` leaves the default, "false", out.
            return op.equals("r");
        }
        return !snapshot.asText().equals("false") && !snapshot.asText().equals("incremental");
    }

    private static String number(JsonNode source, String name) {
        JsonNode value = source.path(name);
        if (!value.canConvertToLong() || !value.isIntegralNumber() || value.longValue() < 0) {
            throw new ChangeValues.Unfit("its 'source' has no '" + name + "', which orders the changes of a key");
        }
        return String.format("%019d", value.longValue());
    }

    /** A position of parts with a fixed number of hexadecimal digits. */
    private static String hexadecimal(JsonNode source, String name) {
        String text = source.path(name).asText("").strip().toLowerCase(Locale.ROOT);
        if (!text.matches("(0x)?[0-9a-f]+([:.][0-9a-f]+){2}")) {
            throw new ChangeValues.Unfit("its 'source' has no '" + name + "', which orders the changes of a key");
        }
        return text;
    }

    /** Oracle's number of a change, which several changes of a transaction may share; text, as it may exceed a long. */
    private static String scn(JsonNode source) {
        String text = source.path("scn").asText("");
        if (!text.matches("[0-9]{1,20}")) {
            throw new ChangeValues.Unfit("its 'source' has no 'scn', which orders the changes of a key");
        }
        return "0".repeat(20 - text.length()) + text;
    }

    /** The number of a file of the binary log: mysql-bin.1000000 comes after mysql-bin.999999. */
    private static String file(JsonNode source) {
        String name = source.path("file").asText("");
        String digits = name.substring(name.lastIndexOf('.') + 1);
        if (!digits.matches("[0-9]{1,18}")) {
            throw new ChangeValues.Unfit("its 'source' has no 'file' of the binary log, which orders the changes of a key");
        }
        return String.format("%019d", Long.parseLong(digits));
    }
}
