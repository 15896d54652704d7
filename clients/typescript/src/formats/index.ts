/** Conversions from and to the formats of providers and hosts. */
export { AI_SDK, fromAiSdk } from "./ai_sdk.js";
export { ANTHROPIC_MESSAGES, type AnthropicRequest, fromAnthropic, toAnthropic } from "./anthropic.js";
export { fromGemini, GEMINI } from "./gemini.js";
export { compact, FormatError, type Json, type Source } from "./json.js";
export { fromLangChain, LANGCHAIN } from "./langchain.js";
export { fromOpenAI, OPENAI_CHAT, toOpenAI } from "./openai.js";
export { fromPi, PI } from "./pi.js";
export { fromPydanticAi, PYDANTIC_AI } from "./pydantic_ai.js";
export { fromResponses, OPENAI_RESPONSES } from "./responses.js";
export { toAiSdk } from "./to_ai_sdk.js";
export { type GeminiRequest, toGemini } from "./to_gemini.js";
export { toLangChain } from "./to_langchain.js";
export { toPi, toPiEntries } from "./to_pi.js";
export { toPydanticAi } from "./to_pydantic_ai.js";
export { toResponses } from "./to_responses.js";
