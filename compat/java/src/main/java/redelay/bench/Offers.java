package redelay.bench;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

import com.fasterxml.jackson.databind.JsonNode;
import org.redisson.api.RDelayedQueue;

/** Offers, each counted when its reply has arrived. Several queues take turns. */
final class Offers {
    private final List<RDelayedQueue<String>> queues;
    private final int concurrency;
    private final int batch;
    private final long shortest;
    private final long longest;
    private final double perSecond;
    private final long count;
    private final long millis;
    private final String padding;

    private final AtomicLong turns = new AtomicLong();
    private final AtomicLong claimed = new AtomicLong();
    private final AtomicLong stored = new AtomicLong();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final long begun = System.nanoTime();

    Offers(List<RDelayedQueue<String>> queues, JsonNode job) {
        this.queues = queues;
        concurrency = job.get("concurrency").asInt();
        batch = job.get("batch").asInt();
        shortest = job.get("delay").get(0).asLong();
        longest = job.get("delay").get(1).asLong();
        perSecond = job.get("per_second").asDouble();
        count = job.get("count").asLong();
        millis = job.get("millis").asLong();
        padding = "x".repeat(job.get("size").asInt());
    }

    Reply run() throws Exception {
        if (perSecond > 0) {
            atARate();
        } else {
            inChains();
        }
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        return Reply.rate(stored.get(), System.nanoTime() - begun);
    }

    /** Keeps {@code concurrency} calls in flight: each reply sends the next call. No thread waits, which is the fastest way. */
    private void inChains() throws InterruptedException {
        CountDownLatch ended = new CountDownLatch(concurrency);
        for (int i = 0; i < concurrency; i++) {
            next(ended);
        }
        ended.await();
    }

    private void next(CountDownLatch ended) {
        boolean more = claimed.getAndAdd(batch) < count && System.nanoTime() - begun < millis * 1_000_000L;
        if (!more || failure.get() != null) {
            ended.countDown();
            return;
        }
        offerBatch().whenComplete((nothing, why) -> {
            note(batch, why);
            next(ended);
        });
    }

    /** RDelayedQueue has no addAll, and RBatch has no RDelayedQueue: a batch is {@code batch} offers sent together. */
    private CompletableFuture<?> offerBatch() {
        if (batch == 1) {
            return offer();
        }
        CompletableFuture<?>[] offers = new CompletableFuture<?>[batch];
        for (int i = 0; i < batch; i++) {
            offers[i] = offer();
        }
        return CompletableFuture.allOf(offers);
    }

    /** Independent of the replies: a late reply does not delay the next offer. */
    private void atARate() throws InterruptedException {
        CountDownLatch answered = new CountDownLatch((int) count);
        for (long i = 0; i < count; i++) {
            long at = begun + (long) (i * 1e9 / perSecond);
            for (long wait = at - System.nanoTime(); wait > 0; wait = at - System.nanoTime()) {
                LockSupport.parkNanos(wait);
            }
            offer().whenComplete((nothing, why) -> {
                note(1, why);
                answered.countDown();
            });
        }
        answered.await();
    }

    private CompletableFuture<Void> offer() {
        long delay = shortest == longest ? shortest : ThreadLocalRandom.current().nextLong(shortest, longest + 1);
        String payload = Payload.due(Clock.micros() + delay * 1_000, padding);
        RDelayedQueue<String> queue = queues.get((int) (turns.getAndIncrement() % queues.size()));
        return queue.offerAsync(payload, delay, TimeUnit.MILLISECONDS).toCompletableFuture();
    }

    private void note(int number, Throwable why) {
        if (why == null) {
            stored.addAndGet(number);
        } else {
            failure.compareAndSet(null, why);
        }
    }
}
