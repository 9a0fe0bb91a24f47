package redelay.compat;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.NullNode;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;

/** The commands of the protocol. Each takes its fields and returns its answer. */
public final class Commands {
    private static final String OK = "ok";

    /** The commands of the protocol that only redelay has. */
    private static final Set<String> UNSUPPORTED = Set.of(
            "lease", "receive", "receivemany", "ack", "retry", "snooze", "release", "reject", "extend", "inflight", "dead",
            "requeue", "releaseall", "work", "job", "jobheld", "jobget", "jobstate", "jobcancel", "jobmove", "schedule",
            "unschedule", "pause", "resume", "limit", "maxinflight");

    private final Queues queues;
    private final Values values;
    private final Map<String, Command> commands = new HashMap<>();

    private record Command(int fields, Action action) {
    }

    private interface Action {
        String run(String[] fields) throws Exception;
    }

    public Commands(RedissonClient client, NamedCodec codec) {
        this.queues = new Queues(client, codec);
        this.values = codec.values();

        add("open", 1, f -> {
            queues.open(f[0]);
            return OK;
        });
        add("destroy", 1, f -> {
            queues.destroy(f[0]);
            return OK;
        });

        add("offer", 3, f -> {
            queues.delayed(f[0]).offer(values.read(f[1]), Long.parseLong(f[2]), TimeUnit.MILLISECONDS);
            return OK;
        });
        add("offerall", 4, f -> offerAll(queues.delayed(f[0]), Integer.parseInt(f[1]), Long.parseLong(f[2]), f[3]));
        add("size", 1, f -> String.valueOf(queues.delayed(f[0]).size()));
        add("readall", 1, f -> text(queues.delayed(f[0]).readAll()));
        add("peek", 1, f -> text(queues.delayed(f[0]).peek()));
        add("dpoll", 1, f -> text(queues.delayed(f[0]).poll()));
        add("clear", 1, f -> {
            queues.delayed(f[0]).clear();
            return OK;
        });
        add("contains", 2, f -> String.valueOf(queues.delayed(f[0]).contains(values.read(f[1]))));
        add("remove", 2, f -> String.valueOf(queues.delayed(f[0]).remove(values.read(f[1]))));

        add("put", 2, f -> {
            queues.blocking(f[0]).put(values.read(f[1]));
            return OK;
        });
        add("poll", 2, f -> text(poll(queues.blocking(f[0]), Long.parseLong(f[1]))));
        add("take", 1, f -> text(queues.blocking(f[0]).take()));
        add("drain", 2, f -> drain(queues.blocking(f[0]), Integer.parseInt(f[1])));
        add("len", 1, f -> String.valueOf(queues.blocking(f[0]).size()));
    }

    private void add(String name, int fields, Action action) {
        commands.put(name, new Command(fields, action));
    }

    String run(String name, String[] fields) throws Exception {
        if (UNSUPPORTED.contains(name)) {
            throw new UnsupportedCommandException("Redisson has no '" + name + "'");
        }
        Command command = commands.get(name);
        if (command == null) {
            throw new UsageException("no command '" + name + "'");
        }
        if (fields.length != command.fields) {
            throw new UsageException("'" + name + "' has " + command.fields + " fields, got " + fields.length);
        }
        return command.action.run(fields);
    }

    private String offerAll(RDelayedQueue<Object> queue, int count, long delay, String prefix) throws Exception {
        Object[] offered = new Object[count];
        for (int i = 0; i < count; i++) {
            offered[i] = values.read(Json.MAPPER.writeValueAsString(prefix + i));
        }
        CompletableFuture<?>[] offers = IntStream.range(0, count)
                .mapToObj(i -> queue.offerAsync(offered[i], delay, TimeUnit.MILLISECONDS).toCompletableFuture())
                .toArray(CompletableFuture<?>[]::new);
        CompletableFuture.allOf(offers).get();
        return OK;
    }

    /** Redisson's poll(0) blocks for ever, so the peer calls poll() for a timeout of 0. */
    private static Object poll(RBlockingQueue<Object> queue, long millis) throws InterruptedException {
        return millis == 0 ? queue.poll() : queue.poll(millis, TimeUnit.MILLISECONDS);
    }

    private String drain(RBlockingQueue<Object> queue, int count) throws InterruptedException, JsonProcessingException {
        ArrayNode taken = Json.MAPPER.createArrayNode();
        for (int i = 0; i < count; i++) {
            taken.add(json(queue.take()));
        }
        return Json.MAPPER.writeValueAsString(taken);
    }

    private String text(Collection<Object> elements) throws JsonProcessingException {
        ArrayNode array = Json.MAPPER.createArrayNode();
        elements.forEach(element -> array.add(json(element)));
        return Json.MAPPER.writeValueAsString(array);
    }

    private String text(Object value) throws JsonProcessingException {
        return Json.MAPPER.writeValueAsString(json(value));
    }

    private JsonNode json(Object value) {
        return value == null ? NullNode.getInstance() : values.write(value);
    }
}
