package redelay.compat;

import java.util.concurrent.ExecutionException;

import com.fasterxml.jackson.core.JsonProcessingException;
import org.redisson.client.RedisException;
import org.redisson.client.RedisTimeoutException;

/** Writes a failure on one line: {@code !kind: message}. */
final class Failure {
    private Failure() {
    }

    static String line(Throwable thrown) {
        Throwable failure = thrown instanceof ExecutionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        return ('!' + kind(failure) + ": " + message(failure)).replaceAll("\\s*[\\r\\n]+\\s*", " ").strip();
    }

    private static String kind(Throwable failure) {
        if (failure instanceof UsageException) {
            return "usage";
        }
        if (failure instanceof UnsupportedCommandException) {
            return "unsupported";
        }
        if (failure instanceof IllegalArgumentException || failure instanceof JsonProcessingException) {
            return "argument";
        }
        if (failure instanceof RedisTimeoutException) {
            return "timeout";
        }
        if (failure instanceof RedisException) {
            return "redis";
        }
        if (failure instanceof InterruptedException) {
            return "interrupted";
        }
        return "error";
    }

    /** Includes the causes: Redisson wraps a failure of a codec in an exception that only names the command. */
    private static String message(Throwable failure) {
        StringBuilder message = new StringBuilder(describe(failure));
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            message.append("; caused by ").append(cause.getClass().getSimpleName()).append(": ").append(describe(cause));
        }
        return message.toString();
    }

    private static String describe(Throwable failure) {
        // Jackson's full message contains the position in the source, on several lines.
        String message = failure instanceof JsonProcessingException json ? json.getOriginalMessage() : failure.getMessage();
        return message == null ? failure.getClass().getSimpleName() : message;
    }
}
