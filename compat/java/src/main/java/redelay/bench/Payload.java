package redelay.bench;

/** The due time that the caller asked for, epoch µs, filled up with x to the size. */
final class Payload {
    private Payload() {
    }

    static String due(long micros, String padding) {
        String due = micros + " ";
        return due.length() < padding.length() ? due + padding.substring(due.length()) : due;
    }

    static long due(String payload) {
        return Long.parseLong(payload, 0, payload.indexOf(' '), 10);
    }
}
