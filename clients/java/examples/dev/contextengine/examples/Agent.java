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

/** An agent's loop against a model that is made up: it calls one tool, then answers. Its argument is the server's address. */
public final class Agent {
    private Agent() {}

    public static void main(String[] arguments) {
        String target = arguments.length > 0 ? arguments[0] : ContextEngineClient.DEFAULT_TARGET;
        try (var client = ContextEngineClient.create(target)) {
            Session session = client.session("example", Ids.newId());
            for (String question : List.of("Where is order 4711?", "And order 4712?")) {
                turn(session, question);
            }
        }
    }

    private static void turn(Session session, String question) {
        List<Message> ingest = List.of(Messages.user(question));
        while (true) {
            Assembly context = session.assemble(AssembleRequest.newBuilder().addAllIngest(ingest).build());
            context.degraded().ifPresent(why -> System.out.println("the service is away: " + why.reason()));
            Message reply = model(context.messages());
            List<ToolCallPart> calls =
                    reply.getPartsList().stream().filter(Part::hasToolCall).map(Part::getToolCall).toList();
            if (calls.isEmpty()) {
                System.out.println(Messages.textOf(reply));
                session.afterTurn(AfterTurnRequest.newBuilder().addMessages(reply).build());
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
