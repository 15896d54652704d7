package dev.contextengine.examples;

import dev.contextengine.client.Assembly;
import dev.contextengine.client.ContextEngineClient;
import dev.contextengine.client.Ids;
import dev.contextengine.client.Messages;
import dev.contextengine.client.Session;
import dev.contextengine.v1.AfterTurnRequest;
import dev.contextengine.v1.AssembleRequest;
import dev.contextengine.v1.Message;
import dev.contextengine.v1.Part;
import dev.contextengine.v1.Role;
import dev.contextengine.v1.ToolCallPart;
import java.util.ArrayList;
import java.util.List;

/**
 * An agent's loop against a model that is made up: it calls one tool, then answers. Its arguments, none of them needed:
 *
 * <pre>[ADDRESS [SESSION [QUESTION ...]]]</pre>
 *
 * <p>Without a session it begins one; without questions it asks two of its own. Where OTEL_EXPORTER_OTLP_ENDPOINT is set, each
 * turn is a trace that goes there.
 */
public final class Agent {
    private Agent() {}

    public static void main(String[] arguments) {
        List<String> given = List.of(arguments);
        String target = given.isEmpty() ? ContextEngineClient.DEFAULT_TARGET : given.get(0);
        String sessionId = given.size() < 2 ? Ids.newId() : given.get(1);
        List<String> questions = given.size() < 3
                ? List.of("Where is order 4711?", "And order 4712?")
                : given.subList(2, given.size());
        try (var tracing = Tracing.start(); var client = ContextEngineClient.create(target)) {
            Session session = client.session("example", sessionId);
            for (String question : questions) {
                tracing.traced("invoke_agent example", () -> {
                    turn(tracing, session, question);
                    return null;
                });
            }
        }
    }

    private static void turn(Tracing tracing, Session session, String question) {
        List<Message> ingest = List.of(Messages.user(question));
        while (true) {
            AssembleRequest request = AssembleRequest.newBuilder().addAllIngest(ingest).build();
            Assembly context = tracing.tracedCall("Assemble", () -> session.assemble(request));
            context.degraded().ifPresent(why -> System.out.println("the service is away: " + why.reason()));
            Message reply = model(context.messages());
            List<ToolCallPart> calls =
                    reply.getPartsList().stream().filter(Part::hasToolCall).map(Part::getToolCall).toList();
            if (calls.isEmpty()) {
                System.out.println(Messages.textOf(reply));
                AfterTurnRequest over = AfterTurnRequest.newBuilder().addMessages(reply).build();
                tracing.tracedCall("AfterTurn", () -> session.afterTurn(over));
                return;
            }
            ingest = new ArrayList<>(List.of(reply));
            for (ToolCallPart call : calls) {
                ingest.add(Messages.toolResult(call.getCallId(), "in Utrecht, due tomorrow"));
            }
        }
    }

    /** Stands in for a provider: asks for the tool once a question, then answers with what the tool said. */
    private static Message model(List<Message> messages) {
        Message last = messages.get(messages.size() - 1);
        if (last.getRole() == Role.ROLE_TOOL) {
            return Messages.assistant("It is " + Messages.textOf(last) + ".");
        }
        String order = Messages.textOf(last).replaceAll("\\D", "");
        return Messages.assistant(
                "", Messages.toolCall("call-" + order, "find_order", "{\"order\": \"" + order + "\"}"));
    }
}
