package dev.contextengine.client;

import dev.contextengine.v1.AttachRequest;
import dev.contextengine.v1.RuntimeGrpc;

/** Lends a model to the server. */
public final class RuntimeRpcs {
    private final Transport transport;

    RuntimeRpcs(Transport transport) {
        this.transport = transport;
    }

    /**
     * Opens a stream over which the server asks for completions and the harness answers them. Close it when done. It has no
     * deadline and is not opened again by itself; {@link ContextEngineClient#lend} does that and more.
     *
     * @param hello introduces the harness
     * @return the stream
     */
    public Attachment attach(AttachRequest.Hello hello) {
        return new Attachment(transport.stream(RuntimeGrpc.getAttachMethod(), ""), hello);
    }
}
