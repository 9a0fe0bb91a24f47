package redelay.compat;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;

/** The handles of this peer. Only opened delayed queues transfer. */
final class Queues {
    private final RedissonClient client;
    private final NamedCodec codec;
    private final QuietDelayedQueues quiet;
    private final Map<String, RDelayedQueue<Object>> delayed = new HashMap<>();
    private final Set<String> open = new HashSet<>();

    Queues(RedissonClient client, NamedCodec codec) {
        this.client = client;
        this.codec = codec;
        this.quiet = new QuietDelayedQueues(client);
    }

    RBlockingQueue<Object> blocking(String name) {
        return client.getBlockingQueue(name, codec.ofQueue(name));
    }

    /** The opened handle of a queue, or else a handle that does everything except transfer. */
    RDelayedQueue<Object> delayed(String name) {
        return delayed.computeIfAbsent(name, unopened -> quiet.make(blocking(unopened)));
    }

    /** Opening a queue again has no effect, so that one {@link #destroy} always ends the transfer. */
    void open(String name) {
        if (open.add(name)) {
            delayed.put(name, client.getDelayedQueue(blocking(name)));
        }
    }

    /** Keeps the destroyed handle, because Redisson still offers through it. */
    void destroy(String name) {
        if (open.remove(name)) {
            delayed.get(name).destroy();
        }
    }
}
