package redelay.bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

import org.redisson.api.RBlockingQueue;

/** Takes with a number of takers until a number of payloads is taken. */
final class Takes {
    private final RBlockingQueue<String> queue;
    private final AtomicLong left;
    private final CountDownLatch ended;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private Takes(RBlockingQueue<String> queue, int takers, long count) {
        this.queue = queue;
        left = new AtomicLong(count);
        ended = new CountDownLatch(takers);
    }

    static Reply run(RBlockingQueue<String> queue, int takers, long count) throws Exception {
        Takes takes = new Takes(queue, takers, count);
        long begun = System.nanoTime();
        for (int i = 0; i < takers; i++) {
            takes.next();
        }
        takes.ended.await();
        if (takes.failure.get() != null) {
            throw new IllegalStateException(takes.failure.get());
        }
        return Reply.rate(count, System.nanoTime() - begun);
    }

    private void next() {
        // Each payload is claimed before it is taken, so that no taker waits for one that does not come.
        if (left.getAndDecrement() <= 0 || failure.get() != null) {
            ended.countDown();
            return;
        }
        queue.takeAsync().whenComplete((payload, why) -> {
            if (why != null) {
                failure.compareAndSet(null, why);
            }
            next();
        });
    }
}
