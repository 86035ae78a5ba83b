package headrace;

import java.io.Serializable;
import java.util.Objects;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.csv.CSVOptions;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Files of CSV, of which each value is read as it is written or its record is named as bad.
 *
 * Behind the declared columns the schema has two more: {@link #RECORD}, the text of a bad record, and {@link #REASON}.
 * The option {@link #FOLDERS} has the two numbers of {@link FolderValues}.
 */
public final class CsvFormat extends CSVFileFormat {
    static final String RECORD = "__raw";
    static final String REASON = "__reason";
    static final String FOLDERS = "headraceFolders";

    @Override
    public Function1<PartitionedFile, Iterator<InternalRow>> buildReader(SparkSession session, StructType schema,
            StructType partitions, StructType required, Seq<Filter> filters, Map<String, String> options,
            Configuration hadoop) {
        SQLConf conf = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
        CSVOptions parsed = new CSVOptions(options, false, conf.sessionLocalTimeZone(), conf.columnNameOfCorruptRecord());
        StructType declared = new StructType(java.util.Arrays.copyOf(schema.fields(), schema.length() - 2));
        String[] folders = options.get(FOLDERS).get().split(",");
        return new FileReader(declared, required, parsed, parsed.parameters().contains("locale"), Integer.parseInt(folders[0]), Integer.parseInt(folders[1]),
            SerializableConfiguration.broadcast(session.sparkContext(), hadoop));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof CsvFormat;
    }

    @Override
    public int hashCode() {
        return Objects.hash(CsvFormat.class);
    }

    private static final class FileReader extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
            implements Serializable {
        private final StructType declared;
        private final StructType required;
        private final CSVOptions options;
        private final boolean localeIsGiven;
        private final int above;
        private final int ofPath;
        private final Broadcast<SerializableConfiguration> hadoop;

        FileReader(StructType declared, StructType required, CSVOptions options, boolean localeIsGiven, int above,
                int ofPath, Broadcast<SerializableConfiguration> hadoop) {
            this.declared = declared;
            this.required = required;
            this.options = options;
            this.localeIsGiven = localeIsGiven;
            this.above = above;
            this.ofPath = ofPath;
            this.hadoop = hadoop;
        }

        @Override
        public Iterator<InternalRow> apply(PartitionedFile file) {
            FolderValues folders = new FolderValues(declared, above, ofPath, options.zoneId().getId());
            return CollectionConverters.asScala(new CsvRecords(
                declared, required, options, localeIsGiven, folders, file, hadoop.value().value()));
        }
    }
}
