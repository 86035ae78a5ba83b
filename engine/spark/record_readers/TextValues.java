package headrace;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.text.DecimalFormatSymbols;
import java.time.ZoneId;
import java.util.Locale;
import org.apache.spark.SparkUpgradeException;
import org.apache.spark.sql.catalyst.csv.CSVOptions;
import org.apache.spark.sql.catalyst.expressions.ExprUtils;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.util.DateFormatter;
import org.apache.spark.sql.catalyst.util.DateFormatter$;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.catalyst.util.IntervalUtils;
import org.apache.spark.sql.catalyst.util.LegacyDateFormats;
import org.apache.spark.sql.catalyst.util.TimestampFormatter;
import org.apache.spark.sql.catalyst.util.TimestampFormatter$;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;

/**
 * How a text becomes the value of a column: as it is written, or not at all.
 *
 * Spark's readers make something of most texts (measured, 4.1.4): of "20240501" in a date the year 57386, of "202405"
 * the year 202405, of "1,5" in a decimal fifteen, of "1e400" in a double infinity, of "12d" twelve, of "10:30" in a
 * timestamp a time of today. So the form of a text is checked here, and then Spark reads it.
 */
final class TextValues {
    /** Reads a text; null: the text is not a value of the type. */
    interface Reader {
        Object read(String text);
    }

    /** Digits behind which a number is not looked at: reading one takes time with the square of them. */
    private static final int MOST_DIGITS = 1000;
    private static final int GROUP = 3;
    private static final int SHOWN = 50;

    private final ZoneId zone;
    private final Locale locale;
    private final boolean localeIsGiven;
    private final boolean fallsBack;
    private final Option<String> dateFormat;
    private final Option<String> timestampFormat;
    private final Option<String> timestampNtzFormat;
    private final String[] specialNumbers;

    private TextValues(ZoneId zone, Locale locale, boolean localeIsGiven, boolean fallsBack, Option<String> dateFormat,
            Option<String> timestampFormat, Option<String> timestampNtzFormat, String[] specialNumbers) {
        this.zone = zone;
        this.locale = locale;
        this.localeIsGiven = localeIsGiven;
        this.fallsBack = fallsBack;
        this.dateFormat = dateFormat;
        this.timestampFormat = timestampFormat;
        this.timestampNtzFormat = timestampNtzFormat;
        this.specialNumbers = specialNumbers;
    }

    /** Of names of folders: as Spark and Hive write them. */
    static TextValues of(ZoneId zone) {
        return new TextValues(zone, Locale.US, false, false, Option.empty(), Option.empty(), Option.empty(),
            new String[] {"NaN", "Infinity", "-Infinity"});
    }

    static TextValues of(JSONOptions options) {
        return new TextValues(options.zoneId(), options.locale(), options.parameters().contains("locale"),
            isTrue(options.enableDateTimeParsingFallback()), options.dateFormatInRead(),
            options.timestampFormatInRead(), options.timestampNTZFormatInRead(),
            new String[] {"NaN", "Infinity", "-Infinity"});
    }

    /** @param localeIsGiven options that were sent to an executor do not know it. */
    static TextValues of(CSVOptions options, boolean localeIsGiven) {
        return new TextValues(options.zoneId(), options.locale(), localeIsGiven,
            isTrue(options.enableDateTimeParsingFallback()), options.dateFormatOption(),
            options.timestampFormatInRead(), options.timestampNTZFormatInRead(),
            new String[] {options.nanValue(), options.positiveInf(), options.negativeInf()});
    }

    private static boolean isTrue(Option<Object> option) {
        return option.isDefined() && (Boolean) option.get();
    }

    /** The reader of a type; null: there is none for it. */
    Reader reader(DataType type) {
        if (type instanceof StringType) {
            return UTF8String::fromString;
        } else if (type instanceof BinaryType) {
            return text -> text.getBytes(StandardCharsets.UTF_8);
        } else if (type instanceof ByteType) {
            return text -> whole(() -> Byte.valueOf(text));
        } else if (type instanceof ShortType) {
            return text -> whole(() -> Short.valueOf(text));
        } else if (type instanceof IntegerType) {
            return text -> whole(() -> Integer.valueOf(text));
        } else if (type instanceof LongType) {
            return text -> whole(() -> Long.valueOf(text));
        } else if (type instanceof FloatType) {
            return this::asFloat;
        } else if (type instanceof DoubleType) {
            return this::asDouble;
        } else if (type instanceof DecimalType decimal) {
            return decimals(decimal);
        } else if (type instanceof BooleanType) {
            return text -> text.equalsIgnoreCase("true") ? Boolean.TRUE
                : text.equalsIgnoreCase("false") ? Boolean.FALSE : null;
        } else if (type instanceof DateType) {
            return dates();
        } else if (type instanceof TimestampType) {
            return timestamps();
        } else if (type instanceof TimestampNTZType) {
            return timestampsWithoutZone();
        }
        return intervals(type);
    }

    private interface Parsed {
        Object get();
    }

    private static Object whole(Parsed number) {
        try {
            return number.get();
        } catch (NumberFormatException other) {
            return null;
        }
    }

    private Object asFloat(String text) {
        if (!isFloating(text)) {
            Double special = special(text);
            return special == null ? null : (Object) special.floatValue();
        }
        float value = Float.parseFloat(text);
        return Float.isInfinite(value) || value == 0 && !isZero(text) ? null : (Object) value;
    }

    private Object asDouble(String text) {
        if (!isFloating(text)) {
            return special(text);
        }
        double value = Double.parseDouble(text);
        return Double.isInfinite(value) || value == 0 && !isZero(text) ? null : (Object) value;
    }

    private Double special(String text) {
        if (text.equals(specialNumbers[0]) || text.equals("NaN")) {
            return Double.NaN;
        } else if (text.equals(specialNumbers[1]) || text.equals("Infinity") || text.equals("+Infinity")) {
            return Double.POSITIVE_INFINITY;
        } else if (text.equals(specialNumbers[2]) || text.equals("-Infinity")) {
            return Double.NEGATIVE_INFINITY;
        }
        return null;
    }

    /** Whether a text is a number in digits; Java reads "12d", "0x1p3" and blanks around one as well. */
    private static boolean isFloating(String text) {
        int at = 0;
        int end = text.length();
        if (at < end && (text.charAt(at) == '-' || text.charAt(at) == '+')) {
            at++;
        }
        int digits = 0;
        while (at < end && isDigit(text.charAt(at))) {
            at++;
            digits++;
        }
        if (at < end && text.charAt(at) == '.') {
            at++;
            while (at < end && isDigit(text.charAt(at))) {
                at++;
                digits++;
            }
        }
        if (digits == 0) {
            return false;
        }
        if (at < end && (text.charAt(at) == 'e' || text.charAt(at) == 'E')) {
            at++;
            if (at < end && (text.charAt(at) == '-' || text.charAt(at) == '+')) {
                at++;
            }
            int exponent = at;
            while (at < end && isDigit(text.charAt(at))) {
                at++;
            }
            if (at == exponent) {
                return false;
            }
        }
        return at == end;
    }

    /** Whether a number in digits is zero as it is written. */
    static boolean isZero(String text) {
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == 'e' || c == 'E') {
                return true;
            }
            if (c > '0' && c <= '9') {
                return false;
            }
        }
        return true;
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private Reader decimals(DecimalType type) {
        if (!localeIsGiven) {
            return text -> {
                try {
                    return text.length() > MOST_DIGITS ? null : fitted(new BigDecimal(text), type);
                } catch (NumberFormatException other) {
                    return null;
                }
            };
        }
        Function1<String, BigDecimal> parser = ExprUtils.getDecimalParser(locale);
        DecimalFormatSymbols signs = DecimalFormatSymbols.getInstance(locale);
        return text -> {
            if (text.length() > MOST_DIGITS || !isGrouped(text, signs)) {
                return null;
            }
            try {
                BigDecimal number = parser.apply(text);
                return number == null ? null : fitted(number, type);
            } catch (RuntimeException other) {
                return null;
            }
        };
    }

    /** Whether the signs between groups of digits, if there are any, are where they belong. */
    private static boolean isGrouped(String text, DecimalFormatSymbols signs) {
        int point = text.indexOf(signs.getDecimalSeparator());
        String before = point < 0 ? text : text.substring(0, point);
        int last = before.lastIndexOf(signs.getGroupingSeparator());
        if (text.indexOf(signs.getGroupingSeparator()) < 0) {
            return true;
        }
        if (last < 0 || point >= 0 && text.indexOf(signs.getGroupingSeparator(), point) >= 0) {
            return false;
        }
        int digits = 0;
        boolean isFirst = true;
        for (int at = before.length() - 1; at >= 0; at--) {
            char c = before.charAt(at);
            if (c == signs.getGroupingSeparator()) {
                if (digits != GROUP) {
                    return false;
                }
                digits = 0;
                isFirst = false;
            } else if (Character.isDigit(c)) {
                digits++;
            }
        }
        return digits > 0 && digits <= GROUP && !isFirst;
    }

    /** A number with the digits of a type; null: it has others. */
    static Decimal fitted(BigDecimal number, DecimalType type) {
        if (number.signum() != 0 && (long) number.precision() - number.scale() > type.precision() - type.scale()) {
            return null;
        }
        if (number.signum() == 0) {
            return Decimal.apply(BigDecimal.ZERO, type.precision(), type.scale());
        }
        if (number.scale() > type.scale() && number.stripTrailingZeros().scale() > type.scale()) {
            return null;
        }
        return Decimal.apply(number.setScale(type.scale()), type.precision(), type.scale());
    }

    private Reader dates() {
        Reader plain = text -> isDay(text, false) ? unwrapped(DateTimeUtils.stringToDate(clean(text))) : null;
        if (dateFormat.isEmpty()) {
            return plain;
        }
        DateFormatter formatter =
            DateFormatter$.MODULE$.apply(dateFormat, locale, LegacyDateFormats.FAST_DATE_FORMAT(), true);
        return formatted(formatter::parse, plain);
    }

    private Reader timestamps() {
        Reader plain = text -> isDay(text, true) ? unwrapped(DateTimeUtils.stringToTimestamp(clean(text), zone)) : null;
        if (timestampFormat.isEmpty()) {
            return plain;
        }
        TimestampFormatter formatter = TimestampFormatter$.MODULE$.apply(
            timestampFormat, zone, locale, LegacyDateFormats.FAST_DATE_FORMAT(), true);
        return formatted(formatter::parse, plain);
    }

    private Reader timestampsWithoutZone() {
        Reader plain = text -> isDay(text, true)
            ? unwrapped(DateTimeUtils.stringToTimestampWithoutTimeZone(UTF8String.fromString(text), false)) : null;
        if (timestampNtzFormat.isEmpty()) {
            return plain;
        }
        TimestampFormatter formatter = TimestampFormatter$.MODULE$.apply(
            timestampNtzFormat, zone, LegacyDateFormats.FAST_DATE_FORMAT(), true, true);
        return formatted(text -> formatter.parseWithoutTimeZone(text, false), plain);
    }

    private interface Formatter {
        Object parse(String text) throws Exception;
    }

    private Reader formatted(Formatter formatter, Reader plain) {
        return text -> {
            try {
                return formatter.parse(text);
            } catch (SparkUpgradeException asked) {
                throw asked;
            } catch (Exception other) {
                return fallsBack ? plain.read(text) : null;
            }
        };
    }

    /** The beginning of a text, for messages. */
    static String shown(String text) {
        int all = text.codePointCount(0, text.length());
        return all <= SHOWN ? text : text.substring(0, text.offsetByCodePoints(0, SHOWN)) + "...";
    }

    private static UTF8String clean(String text) {
        return DateTimeUtils.cleanLegacyTimestampStr(UTF8String.fromString(text));
    }

    private static Object unwrapped(Option<Object> found) {
        return found.isEmpty() ? null : found.get();
    }

    /**
     * Whether a text begins with a year of four digits (or more, with a sign), a month and a day.
     *
     * @param withTime whether anything may follow, which Spark checks for a timestamp; of a date it reads nothing that
     *     follows, so that only midnight may.
     */
    private static boolean isDay(String text, boolean withTime) {
        String trimmed = text.trim();
        int at = 0;
        int end = trimmed.length();
        boolean isSigned = end > 0 && (trimmed.charAt(0) == '-' || trimmed.charAt(0) == '+');
        int begin = isSigned ? 1 : 0;
        at = behindDigits(trimmed, begin);
        if (at - begin < 4 || at - begin > 4 && !isSigned || at == end || trimmed.charAt(at) != '-') {
            return false;
        }
        int month = at + 1;
        at = behindDigits(trimmed, month);
        if (at == month || at == end || trimmed.charAt(at) != '-') {
            return false;
        }
        int day = at + 1;
        at = behindDigits(trimmed, day);
        if (at == day) {
            return false;
        }
        return at == end || withTime || isMidnight(trimmed, at);
    }

    private static boolean isMidnight(String text, int at) {
        if (text.charAt(at) != 'T' && text.charAt(at) != ' ') {
            return false;
        }
        String time = text.substring(at + 1);
        return time.matches("00:00(:00(\\.0*)?)?Z?");
    }

    private static int behindDigits(String text, int begin) {
        int at = begin;
        while (at < text.length() && isDigit(text.charAt(at))) {
            at++;
        }
        return at;
    }

    private static Reader intervals(DataType type) {
        if (type instanceof CalendarIntervalType) {
            return text -> IntervalUtils.safeStringToInterval(UTF8String.fromString(text));
        } else if (type instanceof YearMonthIntervalType interval) {
            return checked(text -> IntervalUtils.castStringToYMInterval(
                UTF8String.fromString(text), interval.startField(), interval.endField()));
        } else if (type instanceof DayTimeIntervalType interval) {
            return checked(text -> IntervalUtils.castStringToDTInterval(
                UTF8String.fromString(text), interval.startField(), interval.endField()));
        }
        return null;
    }

    private static Reader checked(Reader reader) {
        return text -> {
            try {
                return reader.read(text);
            } catch (RuntimeException other) {
                return null;
            }
        };
    }
}
