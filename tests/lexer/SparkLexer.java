package tests;

import java.nio.charset.StandardCharsets;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;
import org.apache.spark.sql.catalyst.util.SparkParserUtils$;

/** The tokens of texts with U+0001 between them: a line each of its name, start, end and channel, with the value of a string in hexadecimal. */
public class SparkLexer {
    public static String tokens(String joined) {
        StringBuilder out = new StringBuilder();
        String[] texts = joined.split("\u0001", -1);
        for (int i = 0; i < texts.length; i++) {
            SqlBaseLexer lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(texts[i])));
            lexer.removeErrorListeners();
            for (Token token = lexer.nextToken(); token.getType() != Token.EOF; token = lexer.nextToken()) {
                String name = lexer.getVocabulary().getSymbolicName(token.getType());
                out.append(name).append(' ').append(token.getStartIndex()).append(' ');
                out.append(token.getStopIndex() + 1).append(' ').append(token.getChannel());
                if (token.getType() == SqlBaseLexer.STRING_LITERAL || token.getType() == SqlBaseLexer.DOUBLEQUOTED_STRING) {
                    String value = SparkParserUtils$.MODULE$.string(token);
                    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
                    out.append(' ');
                    for (int b = 0; b < bytes.length; b++) {
                        out.append(Integer.toHexString(0x100 | (bytes[b] & 0xff)).substring(1));
                    }
                }
                out.append('\n');
            }
            out.append(lexer.has_unclosed_bracketed_comment ? "unclosed\n\n" : "\n");
        }
        return out.toString();
    }
}
