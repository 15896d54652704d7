package dev.contextengine.client;

import com.google.protobuf.MessageLite;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Gives every rpc its limits, the token, the caller's metadata, the current span and its session's name. */
final class Outgoing implements ClientInterceptor {
    private final String token;
    private final Map<String, Duration> timeouts;
    private final Supplier<Map<String, String>> metadata;
    private final int maxMessageBytes;

    Outgoing(
            String token, Map<String, Duration> timeouts, Supplier<Map<String, String>> metadata, int maxMessageBytes) {
        this.token = token;
        this.timeouts = timeouts;
        this.metadata = metadata;
        this.maxMessageBytes = maxMessageBytes;
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions given, Channel next) {
        Duration timeout = timeouts.getOrDefault(Calls.nameOf(method), Duration.ZERO);
        CallOptions options = given.getDeadline() == null && !timeout.isZero()
                ? given.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS)
                : given;
        return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
            @Override
            public void start(Listener<R> listener, Metadata headers) {
                pairs(options.getOption(Affinity.SESSION)).forEach((name, value) -> headers.put(key(name), value));
                super.start(listener, headers);
            }

            @Override
            public void sendMessage(Q request) {
                int bytes = ((MessageLite) request).getSerializedSize();
                if (bytes > maxMessageBytes) {
                    throw Status.RESOURCE_EXHAUSTED
                            .withDescription("the request has %d bytes; %d is the limit".formatted(bytes, maxMessageBytes))
                            .asRuntimeException();
                }
                super.sendMessage(request);
            }
        };
    }

    private Map<String, String> pairs(String session) {
        Map<String, String> given = metadata.get();
        Map<String, String> pairs = new HashMap<>();
        if (!session.isEmpty()) {
            pairs.put(Affinity.HEADER, session);
        }
        if (!given.containsKey("traceparent")) {
            W3CTraceContextPropagator.getInstance().inject(Context.current(), pairs, Map::put);
        }
        pairs.putAll(given);
        if (!token.isEmpty()) {
            pairs.put("authorization", "Bearer " + token);
        }
        return pairs;
    }

    private static Metadata.Key<String> key(String name) {
        return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
    }
}
