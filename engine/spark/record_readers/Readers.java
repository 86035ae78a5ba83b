package headrace;

import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/** Columns that the method `read` of an object computes: a struct of the columns `r` and of a text, `reason`. */
final class Readers {
    private Readers() {
    }

    static Column column(Object reader, StructType columns, List<Expression> arguments, List<AbstractDataType> types) {
        StructType result = new StructType().add("r", columns).add("reason", DataTypes.StringType);
        // Spark moves a condition below what it depends on, and would read each record twice; not below what it takes
        // for random.
        return ExpressionUtils.column(new Invoke(Literal.create(reader, new ObjectType(reader.getClass())), "read",
            result, CollectionConverters.asScala(arguments).toSeq(), CollectionConverters.asScala(types).toSeq(),
            false, false, false));
    }

    static InternalRow result(InternalRow row, String reason) {
        GenericInternalRow result = new GenericInternalRow(2);
        result.update(0, row);
        result.update(1, reason == null ? null : UTF8String.fromString(reason));
        return result;
    }
}
