import java.util.HexFormat;
import org.apache.kafka.tools.api.Decoder;

/** Lets DumpLogSegments print keys and payloads as hex, so that any bytes can be compared. */
public class HexDecoder implements Decoder<String> {
    @Override
    public String fromBytes(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
