package redelay.bench;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

import org.redisson.api.RBlockingQueue;

/** Takes with a number of takers until a number of payloads is taken. Each of several queues has its share of both. */
final class Takes {
    private final CountDownLatch ended;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private Takes(int takers) {
        ended = new CountDownLatch(takers);
    }

    static Reply run(List<RBlockingQueue<String>> queues, int takers, long count) throws Exception {
        Takes takes = new Takes(takers);
        List<AtomicLong> left = queues.stream().map(queue -> new AtomicLong(count / queues.size())).toList();
        long begun = System.nanoTime();
        for (int i = 0; i < takers; i++) {
            takes.next(queues.get(i % queues.size()), left.get(i % queues.size()));
        }
        takes.ended.await();
        if (takes.failure.get() != null) {
            throw new IllegalStateException(takes.failure.get());
        }
        return Reply.rate(count, System.nanoTime() - begun);
    }

    private void next(RBlockingQueue<String> queue, AtomicLong left) {
        // Each payload is claimed before it is taken, so that no taker waits for one that does not come.
        if (left.getAndDecrement() <= 0 || failure.get() != null) {
            ended.countDown();
            return;
        }
        queue.takeAsync().whenComplete((payload, why) -> {
            if (why != null) {
                failure.compareAndSet(null, why);
            }
            next(queue, left);
        });
    }
}
