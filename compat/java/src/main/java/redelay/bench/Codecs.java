package redelay.bench;

import java.util.ArrayList;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.netty.buffer.ByteBuf;
import org.msgpack.jackson.dataformat.MessagePackFactory;
import org.redisson.client.codec.Codec;
import org.redisson.client.codec.StringCodec;
import org.redisson.client.handler.State;
import org.redisson.client.protocol.Decoder;
import org.redisson.client.protocol.Encoder;
import org.redisson.codec.JsonJacksonCodec;
import org.redisson.codec.Kryo5Codec;
import org.redisson.codec.TypedJsonJacksonCodec;

/** Redisson's codecs on one thread. */
final class Codecs {
    private static volatile Object sink;

    private Codecs() {
    }

    static Reply run(String name, boolean encode, long millis) throws Exception {
        Order order = Order.example();
        order.lines = new ArrayList<>(order.lines);
        Codec codec = switch (name) {
            case "json" -> new TypedJsonJacksonCodec(Order.class, new ObjectMapper());
            case "msgpack" -> new TypedJsonJacksonCodec(Order.class, new ObjectMapper(new MessagePackFactory()));
            case "json-jackson" -> new JsonJacksonCodec();
            case "kryo5" -> new Kryo5Codec();
            case "string" -> StringCodec.INSTANCE;
            default -> throw new IllegalArgumentException("no such codec: " + name);
        };
        Object value = name.equals("string") ? "x".repeat(100) : order;
        return encode ? encode(codec.getValueEncoder(), value, millis)
                : decode(codec.getValueDecoder(), codec.getValueEncoder().encode(value), millis);
    }

    private static Reply encode(Encoder encoder, Object value, long millis) throws Exception {
        long begun = System.nanoTime();
        long count = 0;
        while (System.nanoTime() - begun < millis * 1_000_000) {
            for (int i = 0; i < 100; i++) {
                ByteBuf payload = encoder.encode(value);
                sink = payload;
                payload.release();
            }
            count += 100;
        }
        return Reply.rate(count, System.nanoTime() - begun);
    }

    private static Reply decode(Decoder<Object> decoder, ByteBuf payload, long millis) throws Exception {
        State state = new State();
        long begun = System.nanoTime();
        long count = 0;
        while (System.nanoTime() - begun < millis * 1_000_000) {
            for (int i = 0; i < 100; i++) {
                payload.readerIndex(0);
                sink = decoder.decode(payload, state);
            }
            count += 100;
        }
        payload.release();
        return Reply.rate(count, System.nanoTime() - begun);
    }
}
