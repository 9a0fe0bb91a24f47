package redelay.bench;

import java.util.List;

/** The result of a job. The counterpart of Reply in benches/beside/src/job.rs. */
public final class Reply {
    public long count;
    public double seconds;
    public List<Long> late = List.of();
    public String error;

    static Reply rate(long count, long nanos) {
        Reply reply = new Reply();
        reply.count = count;
        reply.seconds = nanos / 1e9;
        return reply;
    }

    static Reply late(List<Long> late) {
        Reply reply = new Reply();
        reply.count = late.size();
        reply.late = late;
        return reply;
    }

    static Reply failed(Throwable why) {
        Reply reply = new Reply();
        reply.error = why.toString();
        return reply;
    }
}
