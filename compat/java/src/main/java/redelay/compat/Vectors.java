package redelay.compat;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

import com.example.shop.Shapes;
import com.fasterxml.jackson.annotation.JsonAutoDetect;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import org.redisson.client.codec.Codec;
import org.redisson.client.handler.State;
import org.redisson.codec.TypedJsonJacksonCodec;

/**
 * What Redisson's codecs make of values, without a server.
 *
 * <p>{@code Vectors write CODEC} prints the rows of a file of vectors: the {@link Samples}, each as this codec writes it.
 * {@code Vectors classes CODEC} does so with {@link Classes}, {@code Vectors mapper CODEC} with {@link Mappers}, and
 * {@code Vectors serialized CODEC} with {@link Serialized}, whose values are JSON with times as texts; the codec
 * {@code java-serialization} is Java's own. {@code Vectors shapes CODEC} does so with {@link Shapes}.
 *
 * <p>{@code Vectors again} reads lines of a codec, a tab and a payload in hex, and answers each with what Redisson writes when
 * it has read that payload, in hex; or with ! and why it does not read or write it.
 */
public final class Vectors {
    private static final String TYPED = "typed-json:";

    /** Their fields are not public. It has no modules, since times have another form in each codec. */
    private static final ObjectMapper SHAPES = new ObjectMapper()
            .setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY)
            .setDefaultPropertyInclusion(JsonInclude.Include.NON_NULL)
            .configure(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY, true);

    private Vectors() {
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        if (args.length == 2 && args[0].equals("write")) {
            write(args[1], Samples.of(args[1]), Json.MAPPER, answers);
        } else if (args.length == 2 && args[0].equals("classes")) {
            write(args[1], Classes.samples(), Json.MAPPER, answers);
        } else if (args.length == 2 && args[0].equals("mapper")) {
            write(args[1], Mappers.samples(), Json.MAPPER, answers);
        } else if (args.length == 2 && args[0].equals("shapes")) {
            write(args[1], Shapes.all(), SHAPES, answers);
        } else if (args.length == 2 && args[0].equals("serialized")) {
            boolean plain = args[1].equals("java-serialization");
            write(args[1], plain ? Serialized.inside() : Serialized.samples(), Serialized.TEXTS, answers);
        } else if (args.length == 1 && args[0].equals("again")) {
            again(answers);
        } else {
            System.err.println("usage: Vectors write <codec> | classes <codec> | mapper <codec> | serialized <codec> | shapes <codec> | again");
            System.exit(2);
        }
        answers.flush();
        System.exit(0);
    }

    private static void write(String name, Map<String, Object> samples, ObjectMapper mapper, PrintStream rows) throws IOException {
        rows.println("# name\tJava class\tvalue as plain JSON\tbytes in hex, as Redisson 4.7.0 writes them");
        for (Map.Entry<String, Object> sample : samples.entrySet()) {
            Object value = sample.getValue();
            String payload;
            try {
                byte[] bytes = name.equals("java-serialization") ? Serialized.bytes(value)
                        : encode(codec(name.equals("typed-json") ? TYPED + value.getClass().getName() : name), value);
                payload = HexFormat.of().formatHex(bytes);
            } catch (IOException | RuntimeException e) {
                System.err.println(sample.getKey() + ": " + e.getMessage());
                continue;
            }
            // That mapper has its own forms of times.
            String json = name.startsWith("mapper-") ? "!" : json(mapper, value);
            String type = value == null ? "null" : value.getClass().getName();
            rows.println(String.join("\t", sample.getKey(), type, json, payload));
        }
    }

    private static String json(ObjectMapper mapper, Object value) {
        try {
            return mapper.writeValueAsString(value);
        } catch (JsonProcessingException e) {
            return "!" + e.getClass().getSimpleName();
        }
    }

    private static void again(PrintStream answers) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Codec> codecs = new HashMap<>();
        answers.println("ready");
        answers.flush();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            answers.println(again(codecs.computeIfAbsent(fields[0], Vectors::codec), HexFormat.of().parseHex(fields[1])));
            answers.flush();
        }
    }

    private static String again(Codec codec, byte[] payload) {
        try {
            return HexFormat.of().formatHex(encode(codec, decode(codec, payload)));
        } catch (IOException | RuntimeException | StackOverflowError e) {
            return ("!" + e).lines().findFirst().orElse("!");
        }
    }

    static Codec codec(String name) {
        try {
            if (name.startsWith(TYPED)) {
                return new TypedJsonJacksonCodec(Class.forName(name.substring(TYPED.length())));
            }
            Codec mapper = Mappers.codec(name);
            return mapper == null ? NamedCodec.of(name).redisson() : mapper;
        } catch (ClassNotFoundException | UnknownCodecException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private static byte[] encode(Codec codec, Object value) throws IOException {
        ByteBuf bytes = codec.getValueEncoder().encode(value);
        try {
            return ByteBufUtil.getBytes(bytes);
        } finally {
            bytes.release();
        }
    }

    private static Object decode(Codec codec, byte[] payload) throws IOException {
        return codec.getValueDecoder().decode(Unpooled.wrappedBuffer(payload), new State());
    }
}
