/**
 * The client of contextengine, the gRPC service that decides what a language model sees.
 *
 * <pre>{@code
 * try (var client = ContextEngineClient.create("127.0.0.1:50051")) {
 *     Session session = client.session("support", "case-1");
 *     Assembly context = session.assemble(
 *             AssembleRequest.newBuilder().addIngest(Messages.user("Where is my order?")).build());
 *     Message reply = callTheModel(context.response().getSystemPromptAddition(), context.messages());
 *     session.afterTurn(AfterTurnRequest.newBuilder().addMessages(reply).build());
 * }
 * }</pre>
 *
 * <p>Requests, replies and messages are those of {@link dev.contextengine.v1}. How the client behaves when the service is away,
 * what it sends twice and how errors are typed is the same in every language; see clients/README.md in the repository.
 */
package dev.contextengine.client;
