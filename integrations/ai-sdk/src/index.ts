/**
 * contextengine behind the AI SDK of Vercel.
 *
 *     const keeper = new Keeper(new Client("127.0.0.1:50051", { breaker: true }), { agentId: "support", window: 200_000 });
 *     const model = wrapLanguageModel({ model: openai("gpt-5"), middleware: keeper.middleware({ sessionId: "case-1" }) });
 *     const { text } = await generateText({ model, messages });
 */
export { Keeper, type KeeperOptions, type MiddlewareOptions, type PrepareStep, type PrepareStepOptions } from "./keeper.js";
