package dev.contextengine.client;

import com.google.protobuf.Message;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.ArrayDeque;
import java.util.Queue;

/** A stream of requests and a stream of replies, one thread waiting on each at most. gRPC's own loses the details of errors. */
final class BlockingStream<Q extends Message, R> implements AutoCloseable {
    private final ClientCall<Q, R> call;
    private final Object lock = new Object();
    private final Queue<R> arrived = new ArrayDeque<>();
    private Status ended;
    private Metadata trailers;
    private boolean closed;

    BlockingStream(ClientCall<Q, R> call) {
        this.call = call;
        call.start(new Listener(), new Metadata());
        call.request(1);
    }

    /** Sends a request as soon as the stream takes it. False: the stream has ended, and {@link #next} says how. */
    boolean send(Q request) {
        Texts.check(request);
        synchronized (lock) {
            while (ended == null && !closed && !call.isReady()) {
                await();
            }
            return ended == null && !closed && write(request);
        }
    }

    /** Sends the only request. gRPC does not say when a stream of one request is ready. */
    void sendOnly(Q request) {
        synchronized (lock) {
            write(request);
            call.halfClose();
        }
    }

    private boolean write(Q request) {
        try {
            call.sendMessage(request);
            return true;
        } catch (StatusRuntimeException tooLarge) {
            close();
            throw Failure.typed(tooLarge);
        }
    }

    /** Says that no more requests come. */
    void finish() {
        synchronized (lock) {
            if (ended == null && !closed) {
                call.halfClose();
            }
        }
    }

    /** The next reply. Null: the stream has ended well, or was closed here. */
    R next() {
        synchronized (lock) {
            while (arrived.isEmpty() && ended == null && !closed) {
                await();
            }
            if (closed) {
                return null;
            }
            R reply = arrived.poll();
            if (reply != null) {
                call.request(1);
            } else if (!ended.isOk()) {
                throw Failure.typed(ended, trailers);
            }
            return reply;
        }
    }

    private void await() {
        try {
            lock.wait();
        } catch (InterruptedException interrupted) {
            close();
            throw Transport.interrupted(interrupted);
        }
    }

    /** Ends the stream, whatever is under way. */
    @Override
    public void close() {
        synchronized (lock) {
            closed = true;
            lock.notifyAll();
        }
        call.cancel("the stream was left", null);
    }

    private final class Listener extends ClientCall.Listener<R> {
        @Override
        public void onMessage(R reply) {
            synchronized (lock) {
                arrived.add(reply);
                lock.notifyAll();
            }
        }

        @Override
        public void onReady() {
            synchronized (lock) {
                lock.notifyAll();
            }
        }

        @Override
        public void onClose(Status status, Metadata last) {
            synchronized (lock) {
                ended = status;
                trailers = last;
                lock.notifyAll();
            }
        }
    }
}
