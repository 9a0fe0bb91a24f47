package redelay.compat;

import java.lang.reflect.Field;

import org.redisson.QueueTransferService;
import org.redisson.QueueTransferTask;
import org.redisson.Redisson;
import org.redisson.RedissonObject;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RFuture;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.connection.ServiceManager;

/**
 * Makes delayed queues that never transfer, for a peer that only offers or reads.
 *
 * <p>Calling destroy() right after getDelayedQueue() is not enough. getDelayedQueue() subscribes, and the acknowledgement of the
 * subscription runs one transfer, which moves what is due if it comes before destroy(). But Redisson keeps one transfer task per
 * queue and client, and does not start a second one. So a task that does nothing is registered while the handle is made, and then
 * both are removed. The handle is then like any destroyed one: offers are stored and published. The server sees nothing of this.
 */
final class QuietDelayedQueues {
    private final RedissonClient client;
    private final QueueTransferService transfers;

    QuietDelayedQueues(RedissonClient client) {
        this.client = client;
        this.transfers = transferService((Redisson) client);
    }

    RDelayedQueue<Object> make(RBlockingQueue<Object> target) {
        String task = RedissonObject.prefixName("redisson_delay_queue", ((RedissonObject) target).getRawName());
        transfers.schedule(task, new NoTransfer(((Redisson) client).getServiceManager()));
        try {
            RDelayedQueue<Object> queue = client.getDelayedQueue(target);
            queue.destroy();
            return queue;
        } finally {
            transfers.remove(task);
        }
    }

    private static QueueTransferService transferService(Redisson redisson) {
        try {
            ServiceManager services = redisson.getServiceManager();
            return (QueueTransferService) ServiceManager.class.getMethod("getQueueTransferService").invoke(services);
        } catch (NoSuchMethodException e) {
            return transferServiceOf3_21(redisson);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot reach Redisson's transfer tasks", e);
        }
    }

    private static QueueTransferService transferServiceOf3_21(Redisson redisson) {
        try {
            Field field = Redisson.class.getDeclaredField("queueTransferService");
            field.setAccessible(true);
            return (QueueTransferService) field.get(redisson);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot reach Redisson's transfer tasks", e);
        }
    }

    private static final class NoTransfer extends QueueTransferTask {
        NoTransfer(ServiceManager services) {
            super(services);
        }

        @Override
        public void start() {
            // Redisson's task subscribes here.
        }

        @Override
        public void stop() {
            // This task has no subscription.
        }

        @Override
        protected RTopic getTopic() {
            throw new IllegalStateException("never started");
        }

        @Override
        protected RFuture<Long> pushTaskAsync() {
            throw new IllegalStateException("never started");
        }
    }
}
