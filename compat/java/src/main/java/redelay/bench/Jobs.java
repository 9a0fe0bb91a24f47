package redelay.bench;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

import com.fasterxml.jackson.databind.JsonNode;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;

/** Runs the jobs, and keeps the handles that they leave open. */
final class Jobs {
    private final RedissonClient client;
    private final int partitions;
    private final Map<String, RDelayedQueue<String>> open = new HashMap<>();
    private Collector collector;

    /** Each queue of a job stands for this number of queues, if it is more than one. */
    Jobs(RedissonClient client, int partitions) {
        this.client = client;
        this.partitions = partitions;
    }

    Reply run(JsonNode job) throws Exception {
        return switch (job.get("job").asText()) {
            case "open" -> open(job.get("queue").asText(), job.get("number").asInt());
            case "close" -> close();
            case "offer" -> new Offers(allDelayed(names(job)), job).run();
            case "take" -> Takes.run(allReady(partitions(job.get("queue").asText())), job.get("takers").asInt(), job.get("count").asLong());
            case "collect" -> collect(names(job), job.get("takers").asInt());
            case "collected" -> Reply.rate(collector.count(), 0);
            case "stop" -> Reply.late(collector.stop());
            case "codec" -> Codecs.run(job.get("codec").asText(), job.get("encode").asBoolean(), job.get("millis").asLong());
            default -> throw new IllegalArgumentException("no such job: " + job);
        };
    }

    /** The names of all queues that the name in a job stands for. */
    private List<String> names(JsonNode job) {
        String name = job.get("queue").asText();
        int queues = job.get("queues").asInt();
        return queues == 1 ? partitions(name) : IntStream.range(0, queues).boxed().flatMap(i -> partitions(name + "-" + i).stream()).toList();
    }

    /** redelay names the partitions of a queue so, too. */
    private List<String> partitions(String name) {
        return partitions == 1 ? List.of(name) : IntStream.range(0, partitions).mapToObj(i -> name + "#" + i).toList();
    }

    private List<RBlockingQueue<String>> allReady(List<String> names) {
        return names.stream().map(this::ready).toList();
    }

    private List<RDelayedQueue<String>> allDelayed(List<String> names) {
        return names.stream().map(this::delayed).toList();
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

    private Reply collect(List<String> names, int takers) {
        allDelayed(names);
        collector = new Collector(allReady(names), takers);
        return new Reply();
    }
}
