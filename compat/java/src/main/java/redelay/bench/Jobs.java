package redelay.bench;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;

/** Runs the jobs, and keeps the handles that they leave open. */
final class Jobs {
    private final RedissonClient client;
    private final Map<String, RDelayedQueue<String>> open = new HashMap<>();
    private Collector collector;

    Jobs(RedissonClient client) {
        this.client = client;
    }

    Reply run(JsonNode job) throws Exception {
        return switch (job.get("job").asText()) {
            case "open" -> open(job.get("queue").asText(), job.get("number").asInt());
            case "close" -> close();
            case "offer" -> new Offers(delayed(job.get("queue").asText()), job).run();
            case "take" -> Takes.run(ready(job.get("queue").asText()), job.get("takers").asInt(), job.get("count").asLong());
            case "collect" -> collect(job.get("queue").asText(), job.get("takers").asInt());
            case "collected" -> Reply.rate(collector.count(), 0);
            case "stop" -> Reply.late(collector.stop());
            case "codec" -> Codecs.run(job.get("codec").asText(), job.get("encode").asBoolean(), job.get("millis").asLong());
            default -> throw new IllegalArgumentException("no such job: " + job);
        };
    }

    private RBlockingQueue<String> ready(String name) {
        return client.getBlockingQueue(name);
    }

    private RDelayedQueue<String> delayed(String name) {
        return open.computeIfAbsent(name, unopened -> client.getDelayedQueue(ready(unopened)));
    }

    private Reply open(String queue, int number) {
        for (int i = 0; i < number; i++) {
            delayed(queue + "-" + i);
        }
        return Reply.rate(number, 0);
    }

    private Reply close() {
        List<RDelayedQueue<String>> closing = new ArrayList<>(open.values());
        open.clear();
        closing.forEach(RDelayedQueue::destroy);
        return new Reply();
    }

    private Reply collect(String queue, int takers) {
        delayed(queue);
        collector = new Collector(ready(queue), takers);
        return new Reply();
    }
}
