package redelay.bench;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * {@code redelay.bench.Bench <redis-url> <connections> <netty-threads> <partitions>}: runs the jobs of benches/beside with
 * Redisson. Each job and each answer is one JSON object on one line. It ends when its input ends. benches/beside/src/job.rs
 * describes the jobs. The URL may be one of a cluster, {@code redis-cluster://host:port,...}.
 */
public final class Bench {
    private static final String CLUSTER = "redis-cluster://";
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Bench() {
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        // The output of libraries must not come between two answers.
        System.setOut(System.err);
        RedissonClient client = Redisson.create(config(args[0], Integer.parseInt(args[1]), Integer.parseInt(args[2])));
        Jobs jobs = new Jobs(client, Integer.parseInt(args[3]));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        answer(answers, new Reply());
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answer(answers, reply(jobs, MAPPER.readTree(line)));
        }
        // client.shutdown() would wait for blocked calls.
        Runtime.getRuntime().halt(0);
    }

    /** Each setting that differs from the default gives more throughput, or a job is refused without it. */
    private static Config config(String url, int connections, int nettyThreads) {
        Config config = new Config().setCodec(StringCodec.INSTANCE);
        config.setNettyThreads(nettyThreads);
        if (url.startsWith(CLUSTER)) {
            config.useClusterServers()
                    .addNodeAddress(Stream.of(url.substring(CLUSTER.length()).split(",")).map(host -> "redis://" + host).toArray(String[]::new))
                    .setMasterConnectionPoolSize(connections)
                    .setMasterConnectionMinimumIdleSize(connections)
                    // For the few commands that only read. Without replicas, the master gets these, too.
                    .setSlaveConnectionMinimumIdleSize(1)
                    .setSubscriptionsPerConnection(1_000)
                    .setTimeout(30_000);
            return config;
        }
        config.useSingleServer()
                .setAddress(url)
                .setConnectionPoolSize(connections)
                .setConnectionMinimumIdleSize(connections)
                // With the default, 50 connections of 5 channels each, the 251st delayed queue is refused.
                .setSubscriptionsPerConnection(1_000)
                .setTimeout(30_000);
        return config;
    }

    private static Reply reply(Jobs jobs, JsonNode job) {
        try {
            return jobs.run(job);
        } catch (Exception e) {
            return Reply.failed(e);
        }
    }

    private static void answer(PrintStream answers, Reply reply) throws IOException {
        answers.print(MAPPER.writeValueAsString(reply) + '\n');
        answers.flush();
    }
}
