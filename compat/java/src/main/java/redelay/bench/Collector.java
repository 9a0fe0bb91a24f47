package redelay.bench;

import java.util.ArrayList;
import java.util.List;

import org.redisson.api.RBlockingQueue;

/** Threads that take until they are stopped, at least one from each queue, and the lateness of each payload. */
final class Collector {
    /** A payload that ends one taker. An interrupted take sometimes goes on blocking on the server, and takes what others wait for. */
    private static final String STOP = "stop";

    private final List<Long> late = new ArrayList<>();
    private final List<Thread> takers = new ArrayList<>();
    private final List<RBlockingQueue<String>> queues;

    Collector(List<RBlockingQueue<String>> queues, int takers) {
        this.queues = queues;
        for (int i = 0; i < Math.max(takers, queues.size()); i++) {
            RBlockingQueue<String> queue = queues.get(i % queues.size());
            Thread taker = new Thread(() -> take(queue), "taker-" + i);
            taker.setDaemon(true);
            this.takers.add(taker);
            taker.start();
        }
    }

    int count() {
        synchronized (late) {
            return late.size();
        }
    }

    List<Long> stop() throws InterruptedException {
        for (int i = 0; i < takers.size(); i++) {
            queues.get(i % queues.size()).add(STOP);
        }
        for (Thread taker : takers) {
            taker.join();
        }
        return late;
    }

    private void take(RBlockingQueue<String> queue) {
        try {
            while (true) {
                String payload = queue.take();
                if (payload.equals(STOP)) {
                    return;
                }
                long by = Clock.micros() - Payload.due(payload);
                synchronized (late) {
                    late.add(by);
                }
            }
        } catch (InterruptedException unexpected) {
            throw new IllegalStateException(unexpected);
        }
    }
}
