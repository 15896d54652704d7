package dev.contextengine.client;

/** A delta does not fit the list that is held. The next call gets the whole list. */
public final class DeltaMismatchException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    DeltaMismatchException(String message) {
        super(message);
    }
}
