package redelay.bench;

import java.util.ArrayList;
import java.util.List;

import org.redisson.api.RBlockingQueue;

/** Threads that take until they are stopped, and the lateness of each payload. */
final class Collector {
    private final RBlockingQueue<String> queue;
    private final List<Long> late = new ArrayList<>();
    private final List<Thread> takers = new ArrayList<>();

    Collector(RBlockingQueue<String> queue, int takers) {
        this.queue = queue;
        for (int i = 0; i < takers; i++) {
            Thread taker = new Thread(this::take, "taker-" + i);
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

    private void take() {
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
