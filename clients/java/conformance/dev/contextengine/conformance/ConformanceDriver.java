package dev.contextengine.conformance;

import static dev.contextengine.conformance.Wire.all;
import static dev.contextengine.conformance.Wire.object;
import static dev.contextengine.conformance.Wire.read;
import static dev.contextengine.conformance.Wire.responded;
import static dev.contextengine.conformance.Wire.written;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import dev.contextengine.client.Assembly;
import dev.contextengine.client.ClientBuilder;
import dev.contextengine.client.ContextEngineClient;
import dev.contextengine.client.ContextEngineException;
import dev.contextengine.client.Fallback;
import dev.contextengine.client.Ids;
import dev.contextengine.client.Lending;
import dev.contextengine.client.LentModel;
import dev.contextengine.client.Messages;
import dev.contextengine.client.Replies;
import dev.contextengine.client.Session;
import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.AssembleResponse;
import dev.contextengine.v1.AttachRequest;
import dev.contextengine.v1.BootstrapRequest;
import dev.contextengine.v1.CallToolRequest;
import dev.contextengine.v1.CommitCompactionRequest;
import dev.contextengine.v1.CompactRequest;
import dev.contextengine.v1.DeleteRequest;
import dev.contextengine.v1.EndSessionRequest;
import dev.contextengine.v1.EndSubagentRequest;
import dev.contextengine.v1.ExportRequest;
import dev.contextengine.v1.ExportResponse;
import dev.contextengine.v1.GetStatusRequest;
import dev.contextengine.v1.ImportRequest;
import dev.contextengine.v1.IngestBatchRequest;
import dev.contextengine.v1.IngestRequest;
import dev.contextengine.v1.Item;
import dev.contextengine.v1.ListToolsRequest;
import dev.contextengine.v1.MaintainRequest;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.PrepareSubagentSpawnRequest;
import dev.contextengine.v1.RecordHostChangeRequest;
import dev.contextengine.v1.ReportUsageRequest;
import dev.contextengine.v1.ResetSessionRequest;
import dev.contextengine.v1.RollbackSubagentSpawnRequest;
import dev.contextengine.v1.SessionRef;
import dev.contextengine.v1.ShouldCompactRequest;
import dev.contextengine.v1.UpdateModelRequest;
import dev.contextengine.v1.WatchResponse;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.TraceStateBuilder;
import io.opentelemetry.context.Scope;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** The driver of the Java client; see tests/conformance/protocol.md. */
public final class ConformanceDriver {
    private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();

    private final Map<SessionRef, Session> handles = new HashMap<>();
    private final AtomicInteger jobs = new AtomicInteger();
    private ContextEngineClient client;
    private Lending lending;

    /** Answers each line until there are no more. */
    public static void main(String[] arguments) throws IOException {
        ConformanceDriver driver = new ConformanceDriver();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        String line;
        while ((line = input.readLine()) != null) {
            JsonObject answer;
            try {
                answer = driver.answer(JsonParser.parseString(line).getAsJsonObject());
            } catch (ContextEngineException error) {
                answer = object("error", told(error));
            } catch (Exception defect) {
                answer = object("defect", new JsonPrimitive(defect.toString()));
            }
            output.println(GSON.toJson(answer));
        }
        System.exit(0); // an idle channel's threads would live on for a while
    }

    private static JsonObject told(ContextEngineException error) {
        JsonObject told = new JsonObject();
        boolean general = error.getClass() == ContextEngineException.class;
        told.addProperty("type", general ? "ContextEngineError" : error.getClass().getSimpleName());
        told.addProperty("reason", error.reason());
        told.addProperty("code", error.code().name());
        told.addProperty("message", error.getMessage());
        told.add("violations", GSON.toJsonTree(error.violations()));
        told.add("metadata", GSON.toJsonTree(error.metadata()));
        told.addProperty("retry_after", error.retryAfter().map(after -> after.toNanos() / 1e9).orElse(null));
        return told;
    }

    private JsonObject answer(JsonObject asked) throws Exception {
        switch (asked.get("op").getAsString()) {
            case "connect" -> {
                connect(asked.get("target").getAsString(), asked.getAsJsonObject("settings"));
                return new JsonObject();
            }
            case "call" -> {
                return call(asked);
            }
            case "together" -> {
                return together(asked);
            }
            case "traced" -> {
                try (Scope ignored = Span.wrap(spanOf(asked)).makeCurrent()) {
                    return call(asked);
                }
            }
            case "session" -> {
                return session(asked);
            }
            case "assemble" -> {
                AssembleRequest request = read(AssembleRequest.parser(), asked.get("request"));
                boolean delta = !asked.has("delta") || asked.get("delta").getAsBoolean();
                Session session = choosing(asked);
                if (asked.has("host_messages")) {
                    return told(session.assemble(request, all(Message.parser(), asked.get("host_messages"))));
                }
                return told(delta ? session.assemble(request) : session.assembleWhole(request));
            }
            case "project_codex" -> {
                return responded(handle(asked).projectCodex(read(AssembleRequest.parser(), asked.get("request"))));
            }
            case "flush" -> {
                if (hasSession(asked)) {
                    handle(asked).flush();
                } else {
                    client.flush();
                }
                return new JsonObject();
            }
            case "pending" -> {
                JsonObject told = new JsonObject();
                told.addProperty("pending", hasSession(asked) ? handle(asked).pending() : client.pending());
                told.addProperty("rejected", client.rejected().size());
                return told;
            }
            case "import" -> {
                var header = ImportRequest.Header.newBuilder().setSession(handle(asked).ref()).build();
                return responded(client.sessions().importSession(header, all(Message.parser(), asked.get("messages"))));
            }
            case "export" -> {
                JsonArray messages = new JsonArray();
                try (Replies<ExportResponse> rows = handle(asked).export(ExportRequest.getDefaultInstance())) {
                    for (ExportResponse row : rows) {
                        if (row.hasMessage()) {
                            messages.add(written(row.getMessage().getMessage()));
                        }
                    }
                }
                return object("messages", messages);
            }
            case "watch" -> {
                JsonArray events = new JsonArray();
                try (Replies<WatchResponse> watched = handle(asked).watch(asked.get("resume_position").getAsString())) {
                    for (WatchResponse event : watched) {
                        events.add(written(event));
                        if (events.size() == asked.get("count").getAsInt()) {
                            break;
                        }
                    }
                }
                return object("events", events);
            }
            case "lend" -> {
                lend(asked);
                return new JsonObject();
            }
            case "lent" -> {
                lending.close();
                lending.await();
                return object("jobs", new JsonPrimitive(jobs.get()));
            }
            case "fallback" -> {
                JsonElement last = asked.get("last");
                return responded(Fallback.makeUp(
                        read(AssembleRequest.parser(), asked.get("request")),
                        all(Item.parser(), asked.get("held")),
                        last.isJsonNull() ? null : read(AssembleResponse.parser(), last),
                        all(Message.parser(), asked.get("later"))));
            }
            case "text" -> {
                return text(asked.getAsJsonArray("utf16"));
            }
            case "format" -> {
                return Formats.format(asked);
            }
            case "id" -> {
                return object("id", new JsonPrimitive(Ids.newId()));
            }
            default -> throw new IllegalArgumentException("unknown op " + asked.get("op"));
        }
    }

    private void connect(String target, JsonObject settings) {
        if (client != null) {
            client.close();
        }
        ClientBuilder builder = ContextEngineClient.builder(target);
        settings.entrySet().forEach(setting -> set(builder, setting.getKey(), setting.getValue()));
        client = builder.build();
        handles.clear();
    }

    private static void set(ClientBuilder builder, String name, JsonElement value) {
        switch (name) {
            case "timeouts" -> value.getAsJsonObject().entrySet().forEach(timeout -> builder.timeout(
                    timeout.getKey(), Duration.ofNanos((long) (timeout.getValue().getAsDouble() * 1e9))));
            case "retry_for" -> builder.retryFor(Duration.ofNanos((long) (value.getAsDouble() * 1e9)));
            case "token" -> builder.token(value.getAsString());
            case "insecure" -> {
                if (value.getAsBoolean()) {
                    builder.insecure();
                }
            }
            case "fallback" -> builder.fallback(value.getAsBoolean());
            case "breaker" -> builder.breaker(value.getAsBoolean());
            case "max_queued_messages" -> builder.maxQueuedMessages(value.getAsInt());
            case "max_queued_bytes" -> builder.maxQueuedBytes(value.getAsLong());
            case "spill_file" -> builder.spillFile(Path.of(value.getAsString()));
            default -> throw new IllegalArgumentException("unknown setting " + name);
        }
    }

    private void lend(JsonObject asked) throws InvalidProtocolBufferException {
        String text = asked.get("text").getAsString();
        long delayMs = (long) (asked.get("delay").getAsDouble() * 1_000);
        int failures = asked.get("failures").getAsInt();
        jobs.set(0);
        lending = client.lend(read(AttachRequest.Hello.parser(), asked.get("hello")), LentModel.ofText(job -> {
            int given = jobs.incrementAndGet();
            if (given <= failures && given % 2 == 0) {
                throw new StackOverflowError("nor this one");
            }
            if (given <= failures) {
                throw new IllegalStateException("not this one");
            }
            Thread.sleep(delayMs);
            return text;
        }));
    }

    private static boolean hasSession(JsonObject asked) {
        return asked.has("session") && !asked.get("session").isJsonNull();
    }

    private Session handle(JsonObject asked) {
        JsonObject named = asked.getAsJsonObject("session");
        SessionRef ref = SessionRef.newBuilder()
                .setAgentId(named.get("agent_id").getAsString())
                .setSessionId(named.get("session_id").getAsString())
                .build();
        return handles.computeIfAbsent(ref, client::session);
    }

    /** The handle, with what a call of it does while the service is away. */
    private Session choosing(JsonObject asked) {
        Session session = handle(asked);
        if (!asked.has("fallback") || asked.get("fallback").isJsonNull()) {
            return session;
        }
        return asked.get("fallback").getAsBoolean() ? session.bearing() : session.failing();
    }

    /** Calls a unary rpc by its name. */
    private JsonObject call(JsonObject asked) throws Exception {
        String[] rpc = asked.get("rpc").getAsString().split("\\.");
        Object service = ContextEngineClient.class.getMethod(local(rpc[0])).invoke(client);
        for (Method method : service.getClass().getMethods()) {
            if (method.getName().equals(local(rpc[1]))) {
                Class<?> kind = method.getParameterTypes()[0];
                Parser<?> parser = (Parser<?>) kind.getMethod("parser").invoke(null);
                try {
                    return responded((MessageLite) method.invoke(service, read(parser, asked.get("request"))));
                } catch (InvocationTargetException thrown) {
                    throw (Exception) thrown.getCause();
                }
            }
        }
        throw new IllegalArgumentException("no unary rpc " + asked.get("rpc"));
    }

    private JsonObject together(JsonObject asked) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        try {
            Callable<JsonObject> one = () -> {
                try {
                    return call(asked);
                } catch (ContextEngineException error) {
                    return object("error", told(error));
                }
            };
            JsonArray answers = new JsonArray();
            for (Future<JsonObject> answer : threads.invokeAll(Collections.nCopies(asked.get("count").getAsInt(), one))) {
                answers.add(answer.get());
            }
            return object("answers", answers);
        } finally {
            threads.shutdown();
        }
    }

    private static String local(String name) {
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }

    private JsonObject session(JsonObject asked) throws InvalidProtocolBufferException {
        Session session = choosing(asked);
        JsonElement request = asked.get("request");
        return responded(switch (asked.get("method").getAsString()) {
            case "ingest" -> session.ingest(read(IngestRequest.parser(), request));
            case "ingest_batch" -> session.ingestBatch(read(IngestBatchRequest.parser(), request));
            case "after_turn" -> session.afterTurn(read(AfterTurnRequest.parser(), request));
            case "report_usage" -> session.reportUsage(read(ReportUsageRequest.parser(), request));
            case "bootstrap" -> session.bootstrap(read(BootstrapRequest.parser(), request));
            case "should_compact" -> session.shouldCompact(read(ShouldCompactRequest.parser(), request));
            case "commit_compaction" -> session.commitCompaction(read(CommitCompactionRequest.parser(), request));
            case "maintain" -> session.maintain(read(MaintainRequest.parser(), request));
            case "update_model" -> session.updateModel(read(UpdateModelRequest.parser(), request));
            case "status" -> session.status(read(GetStatusRequest.parser(), request));
            case "list_tools" -> session.listTools(read(ListToolsRequest.parser(), request));
            case "call_tool" -> session.callTool(read(CallToolRequest.parser(), request));
            case "prepare_subagent" -> session.prepareSubagent(read(PrepareSubagentSpawnRequest.parser(), request));
            case "rollback_subagent" ->
                session.rollbackSubagent(read(RollbackSubagentSpawnRequest.parser(), request).getSpawnToken());
            case "end_as_subagent" -> session.endAsSubagent(read(EndSubagentRequest.parser(), request));
            case "end" -> session.end(read(EndSessionRequest.parser(), request));
            case "delete" -> session.delete(read(DeleteRequest.parser(), request));
            case "dispose" -> session.dispose();
            case "compact" -> session.compact(read(CompactRequest.parser(), request));
            case "reset" -> session.reset(read(ResetSessionRequest.parser(), request));
            case "record_host_change" -> session.recordHostChange(read(RecordHostChangeRequest.parser(), request));
            default -> throw new IllegalArgumentException("unknown method " + asked.get("method"));
        });
    }

    private static JsonObject told(Assembly assembly) {
        JsonArray items = new JsonArray();
        assembly.items().forEach(item -> items.add(written(item)));
        JsonObject told = responded(assembly.response());
        told.add("items", items);
        told.add("degraded", assembly.degraded()
                .<JsonElement>map(degraded -> {
                    JsonObject why = object("reason", new JsonPrimitive(degraded.reason()));
                    why.addProperty("unqueued", degraded.unqueued());
                    return why;
                })
                .orElse(JsonNull.INSTANCE));
        return told;
    }

    private JsonObject text(JsonArray units) {
        StringBuilder text = new StringBuilder();
        units.forEach(unit -> text.append((char) unit.getAsInt()));
        SessionRef ref = SessionRef.newBuilder().setAgentId("text").setSessionId("text").build();
        boolean refused = false;
        try {
            client.contextEngine().ingest(IngestRequest.newBuilder()
                    .setSession(ref)
                    .setMessage(Messages.user(text.toString()))
                    .build());
        } catch (ContextEngineException.InvalidField error) {
            refused = true;
        }
        return object("refused", new JsonPrimitive(refused));
    }

    private static SpanContext spanOf(JsonObject asked) {
        String[] fields = asked.get("traceparent").getAsString().split("-");
        TraceStateBuilder state = TraceState.builder();
        for (String member : asked.get("tracestate").getAsString().split(",")) {
            String[] pair = member.split("=", 2);
            state.put(pair[0], pair[1]);
        }
        return SpanContext.createFromRemoteParent(fields[1], fields[2], TraceFlags.fromHex(fields[3], 0), state.build());
    }
}
