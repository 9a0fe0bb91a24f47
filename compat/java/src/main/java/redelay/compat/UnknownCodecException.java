package redelay.compat;

/** There is no codec with this name, or not in this version of Redisson. */
public final class UnknownCodecException extends Exception {
    private static final long serialVersionUID = 1L;

    UnknownCodecException(String message) {
        super(message);
    }
}
