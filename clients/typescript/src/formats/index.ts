/** Conversions from and to the formats of providers and hosts. */
export { ANTHROPIC_MESSAGES, type AnthropicRequest, fromAnthropic, toAnthropic } from "./anthropic.js";
export { fromGemini, GEMINI } from "./gemini.js";
export { compact, FormatError, type Json, type Source } from "./json.js";
export { fromOpenAI, OPENAI_CHAT, toOpenAI } from "./openai.js";
export { fromPi, PI } from "./pi.js";
export { fromResponses, OPENAI_RESPONSES } from "./responses.js";
export { type GeminiRequest, toGemini } from "./to_gemini.js";
export { toPi, toPiEntries } from "./to_pi.js";
export { toResponses } from "./to_responses.js";
