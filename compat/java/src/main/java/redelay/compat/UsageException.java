package redelay.compat;

/** The line itself is wrong: no such command, or not its number of fields. */
final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
        super(message);
    }
}
