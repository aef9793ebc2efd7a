import java.io.File;
import java.util.HexFormat;
import java.util.StringJoiner;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.Utils;

/** Prints records as Kafka's own library reads them, header values too, which its tool leaves out. */
public class PrintRecords {
    public static void main(String[] names) throws Exception {
        for (String name : names) {
            try (FileRecords records = FileRecords.open(new File(name), false)) {
                for (RecordBatch batch : records.batches()) {
                    batch.ensureValid();
                    for (Record record : batch) print(record);
                }
            }
        }
    }

    private static void print(Record record) {
        StringJoiner headers = new StringJoiner(",");
        for (Header header : record.headers())
            headers.add(hex(Utils.utf8(header.key())) + "=" + hex(header.value()));
        System.out.println(record.offset() + " " + record.timestamp() + " "
            + hex(record.hasKey() ? Utils.toArray(record.key()) : null) + " "
            + hex(record.hasValue() ? Utils.toArray(record.value()) : null) + " " + headers);
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : "x" + HexFormat.of().formatHex(bytes);
    }
}
