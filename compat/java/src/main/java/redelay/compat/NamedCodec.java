package redelay.compat;

import java.util.Map;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.msgpack.jackson.dataformat.MessagePackFactory;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.codec.Codec;
import org.redisson.client.codec.DoubleCodec;
import org.redisson.client.codec.IntegerCodec;
import org.redisson.client.codec.LongCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.codec.CborJacksonCodec;
import org.redisson.codec.JsonJacksonCodec;
import org.redisson.codec.Kryo5Codec;
import org.redisson.codec.MsgPackJacksonCodec;
import org.redisson.codec.TypedJsonJacksonCodec;

/** A codec of Redisson with its name in the protocol, and the conversion of its values from and to a line. */
public record NamedCodec(Codec redisson, Values values) {

    private static final Map<String, Supplier<NamedCodec>> PLAIN = Map.ofEntries(
            Map.entry("string", () -> new NamedCodec(StringCodec.INSTANCE, SimpleValues.STRING)),
            Map.entry("bytes", () -> new NamedCodec(ByteArrayCodec.INSTANCE, SimpleValues.BYTES)),
            Map.entry("long", () -> new NamedCodec(LongCodec.INSTANCE, SimpleValues.LONG)),
            Map.entry("int", () -> new NamedCodec(IntegerCodec.INSTANCE, SimpleValues.INT)),
            Map.entry("double", () -> new NamedCodec(DoubleCodec.INSTANCE, SimpleValues.DOUBLE)),
            Map.entry("json", () -> new NamedCodec(new TypedJsonJacksonCodec(JsonNode.class), SimpleValues.JSON)),
            Map.entry("msgpack", () -> new NamedCodec(
                    new TypedJsonJacksonCodec(JsonNode.class, new ObjectMapper(new MessagePackFactory())), SimpleValues.JSON)),
            Map.entry("shapes", () -> new NamedCodec(StringCodec.INSTANCE, new ShapeValues())),
            Map.entry("kryo5", () -> new NamedCodec(new Kryo5Codec(), new JavaValues())),
            Map.entry("json-jackson", () -> new NamedCodec(new JsonJacksonCodec(), new JavaValues())),
            Map.entry("msgpack-jackson", () -> new NamedCodec(new MsgPackJacksonCodec(), new JavaValues())),
            Map.entry("cbor-jackson", () -> new NamedCodec(new CborJacksonCodec(), new JavaValues())));

    private static final Map<String, String> WRAPPERS = Map.of(
            "lz4v2", "org.redisson.codec.LZ4CodecV2",
            "snappyv2", "org.redisson.codec.SnappyCodecV2",
            "zstd", "org.redisson.codec.ZStdCodec");

    public static NamedCodec of(String name) throws UnknownCodecException {
        int plus = name.indexOf('+');
        if (plus >= 0 && WRAPPERS.containsKey(name.substring(0, plus))) {
            NamedCodec inner = of(name.substring(plus + 1));
            return new NamedCodec(wrap(WRAPPERS.get(name.substring(0, plus)), inner.redisson), inner.values);
        }
        Supplier<NamedCodec> plain = PLAIN.get(name);
        if (plain == null) {
            throw new UnknownCodecException("unknown codec '" + name + "'; known are "
                    + String.join(" ", PLAIN.keySet().stream().sorted().toList()) + " and, before a + and one of these, "
                    + String.join(" ", WRAPPERS.keySet().stream().sorted().toList()));
        }
        return plain.get();
    }

    /** The codec of a queue. Shapes are written by the codec that has the name of the queue, so that one peer tries each. */
    Codec ofQueue(String queue) {
        return values instanceof ShapeValues ? Vectors.codec(queue) : redisson;
    }

    /** By class name, because Redisson 3.21.0 has neither LZ4CodecV2 nor ZStdCodec. */
    private static Codec wrap(String className, Codec inner) throws UnknownCodecException {
        try {
            return (Codec) Class.forName(className).getConstructor(Codec.class).newInstance(inner);
        } catch (ClassNotFoundException e) {
            throw new UnknownCodecException("this version of Redisson has no " + className);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot make a " + className, e);
        }
    }
}
