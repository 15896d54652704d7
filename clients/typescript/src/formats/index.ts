/** Conversions from and to the formats of providers. */
export { ANTHROPIC_MESSAGES, type AnthropicRequest, fromAnthropic, toAnthropic } from "./anthropic.js";
export { FormatError, type Json, type Source } from "./json.js";
export { fromOpenAI, OPENAI_CHAT, toOpenAI } from "./openai.js";
