package dev.contextengine.client;

import dev.contextengine.v1.AttachRequest;
import dev.contextengine.v1.AttachRequest.Completion;
import dev.contextengine.v1.AttachResponse;
import dev.contextengine.v1.AttachResponse.Job;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * A model that is lent to the server, in threads of its own, until it is closed or its client is. Made by
 * {@link ContextEngineClient#lend}.
 */
public final class Lending implements AutoCloseable {
    // Between two streams: three times as long after each that was not welcomed.
    private static final long FIRST_PAUSE_MS = 100;
    private static final long LONGEST_PAUSE_MS = 5_000;
    // A lease is extended after a third of its time, within these bounds: the clocks of two machines differ.
    private static final long KEEP_OFTEN_MS = 1_000;
    private static final long KEEP_SELDOM_MS = 20_000;

    private static final System.Logger LOG = System.getLogger("dev.contextengine.client");
    private static final ThreadFactory THREADS = work -> {
        Thread thread = new Thread(work, "contextengine-lending");
        thread.setDaemon(true);
        return thread;
    };

    private final ContextEngineClient client;
    private final AttachRequest.Hello hello;
    private final LentModel model;
    private final ExecutorService workers = Executors.newCachedThreadPool(THREADS);
    private final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor(THREADS);
    private final Thread thread;

    private final Object lock = new Object();
    /** What is worked on, by job. */
    private final Map<String, Work> jobs = new HashMap<>();
    /** Answers without receipt, by job. */
    private final Map<String, Completion> answers = new LinkedHashMap<>();
    private Attachment stream;
    private boolean welcomed;
    private boolean closed;
    private ContextEngineException error;

    Lending(ContextEngineClient client, AttachRequest.Hello hello, LentModel model) {
        this.client = client;
        this.hello = hello;
        this.model = model;
        this.thread = THREADS.newThread(this::run);
        thread.start();
    }

    /**
     * Waits until the lending ends.
     *
     * @throws ContextEngineException the error that ended it, which no new stream would mend
     * @throws InterruptedException where this thread is interrupted
     */
    public void await() throws InterruptedException {
        thread.join();
        if (error != null) {
            throw error;
        }
    }

    /** Ends the lending. The server hands out elsewhere what was not answered. */
    @Override
    public void close() {
        synchronized (lock) {
            closed = true;
            if (stream != null) {
                stream.close();
            }
            lock.notifyAll();
        }
    }

    private void run() {
        long pause = FIRST_PAUSE_MS;
        try {
            while (true) {
                try {
                    serve();
                } catch (ContextEngineException thrown) {
                    if (!Failure.isBorne(thrown) && !client.transport().isClosed()) {
                        error = thrown;
                        return;
                    }
                }
                synchronized (lock) {
                    pause = welcomed ? FIRST_PAUSE_MS : pause;
                    welcomed = false;
                    if (!closed) {
                        lock.wait(pause);
                    }
                    if (closed || client.transport().isClosed()) {
                        return;
                    }
                }
                pause = Math.min(3 * pause, LONGEST_PAUSE_MS);
            }
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible); // nobody else has this thread
        } finally {
            workers.shutdownNow();
            clock.shutdownNow();
        }
    }

    /** One stream, to its end. */
    private void serve() {
        try (Attachment opened = client.runtime().attach(hello)) {
            List<Completion> unreceived;
            synchronized (lock) {
                if (closed) {
                    return;
                }
                stream = opened;
                // An answer that comes now goes out twice, which does no harm.
                unreceived = List.copyOf(answers.values());
            }
            unreceived.forEach(opened::send);
            for (AttachResponse reply : opened) {
                hear(reply);
            }
        }
    }

    private void hear(AttachResponse reply) {
        synchronized (lock) {
            switch (reply.getKindCase()) {
                case WELCOME -> welcomed = true;
                case JOB -> begin(new Work(reply.getJob()));
                case RECEIPT -> answers.remove(reply.getReceipt().getJobId());
                case CANCEL -> {
                    Work unwanted = jobs.remove(reply.getCancel().getJobId());
                    if (unwanted != null) {
                        unwanted.keeping.cancel(false);
                        unwanted.working.cancel(true);
                    }
                }
                default -> {
                    // What a later server says is not meant for this client.
                }
            }
        }
    }

    /** Begins a job. The lock is held. */
    private void begin(Work work) {
        jobs.put(work.job.getJobId(), work);
        Instant end = Instant.ofEpochSecond(
                work.job.getLeaseExpireTime().getSeconds(), work.job.getLeaseExpireTime().getNanos());
        long third = Duration.between(Instant.now(), end).toMillis() / 3;
        long every = Math.min(Math.max(third, KEEP_OFTEN_MS), KEEP_SELDOM_MS);
        work.keeping = clock.scheduleAtFixedRate(work::keep, every, every, TimeUnit.MILLISECONDS);
        work.working = workers.submit(work::run);
    }

    private Attachment current() {
        synchronized (lock) {
            return stream;
        }
    }

    /** A job in hand. */
    private final class Work {
        private final Job job;
        private ScheduledFuture<?> keeping;
        private Future<?> working;

        private Work(Job job) {
            this.job = job;
        }

        private void keep() {
            current().send(AttachRequest.KeepLease.newBuilder()
                    .setJobId(job.getJobId())
                    .setLeaseId(job.getLeaseId())
                    .build());
        }

        private void run() {
            Completion.Builder answer;
            Throwable failure = null;
            try {
                Completion completion = model.complete(job);
                Texts.check(completion);
                answer = completion.toBuilder();
            } catch (Throwable failed) { // an error as well: its lease would be kept for ever
                failure = failed;
                answer = Completion.newBuilder().setError("model_failed").setRetryable(true);
            }
            Completion said = answer.setJobId(job.getJobId()).setLeaseId(job.getLeaseId()).build();
            synchronized (lock) {
                keeping.cancel(false);
                // Gone where nobody wants it any more, or has it under a newer lease.
                if (!jobs.remove(job.getJobId(), this)) {
                    return;
                }
                answers.put(job.getJobId(), said);
            }
            if (failure != null) {
                LOG.log(System.Logger.Level.WARNING, "the lent model failed on job " + job.getJobId(), failure);
            }
            current().send(said);
        }
    }
}
