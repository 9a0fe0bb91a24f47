package redelay.compat;

/** A command of the protocol that Redisson has nothing for. */
final class UnsupportedCommandException extends Exception {
    private static final long serialVersionUID = 1L;

    UnsupportedCommandException(String message) {
        super(message);
    }
}
