package redelay.bench;

import java.util.ArrayList;
import java.util.List;

import org.redisson.api.RBlockingQueue;

/** Threads that take until they are stopped, at least one from each queue, and the lateness of each payload. */
final class Collector {
    private final List<Long> late = new ArrayList<>();
    private final List<Thread> takers = new ArrayList<>();

    Collector(List<RBlockingQueue<String>> queues, int takers) {
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
        takers.forEach(Thread::interrupt);
        for (Thread taker : takers) {
            taker.join();
        }
        return late;
    }

    private void take(RBlockingQueue<String> queue) {
        try {
            while (true) {
                String payload = queue.take();
                long by = Clock.micros() - Payload.due(payload);
                synchronized (late) {
                    late.add(by);
                }
            }
        } catch (InterruptedException stopped) {
            // The interrupt of stop().
        }
    }
}
