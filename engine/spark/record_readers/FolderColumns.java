package headrace;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The columns in names of folders, of files whose other columns Spark has read. */
public final class FolderColumns implements Serializable {
    private final StructType columns;
    private final FolderValues folders;

    private FolderColumns(StructType columns, FolderValues folders) {
        this.columns = columns;
        this.folders = folders;
    }

    /**
     * A column of type struct with the columns in `r`, and in `reason` what does not fit, or NULL.
     *
     * @param file the path of the file as Spark has it in _metadata.
     * @param own the columns as the file has them, a struct.
     * @param schema of these columns, as JSON; the others are those of FolderValues.
     */
    public static Column column(Column file, Column own, String schema, String zone, int above, int ofPath) {
        StructType columns = (StructType) ((StructType) DataType.fromJson(schema)).asNullable();
        FolderColumns reader = new FolderColumns(columns, new FolderValues(columns, above, ofPath, zone));
        Expression[] arguments = {ExpressionUtils.expression(file), ExpressionUtils.expression(own)};
        return Readers.column(reader, columns, List.of(arguments), List.of(DataTypes.StringType, columns));
    }

    /** Read the columns of a row. */
    public InternalRow read(UTF8String file, InternalRow own) {
        folders.open(file);
        GenericInternalRow row = new GenericInternalRow(columns.length());
        for (int i = 0; i < columns.length(); i++) {
            row.update(i, own.get(i, columns.fields()[i].dataType()));
        }
        return Readers.result(row, folders.fill(row));
    }
}
