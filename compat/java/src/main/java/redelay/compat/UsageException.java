package redelay.compat;

/** The line is wrong: the command does not exist, or has another number of fields. */
final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
        super(message);
    }
}
