import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type Client, ContextEngineError, DeadlinePassed, type Session } from "@contextengine/client";
import { FormatError } from "@contextengine/client/formats";
import { type AssembleResponse, type Budget, BudgetSchema, type Message, ToolDefinitionSchema } from "@contextengine/client/types";
import type { LanguageModel, LanguageModelMiddleware, ModelMessage, SystemModelMessage } from "ai";

import { kept, keyOf, prompted, shown } from "./list.js";
import { COMPACTION_MS, isRefusal, opened, said, smaller } from "./overflow.js";
import { type CallOptions, Listener, type Model, type Reply, replyOf, type Streamed, type StreamPart } from "./reply.js";
import { Sightings } from "./times.js";

/** Conversations whose last context is remembered. One that is forgotten is sent whole again. */
const MOST = 1_000;
/** Where a call says which session it is about: `providerOptions: { contextengine: { sessionId } }`. */
const OURS = "contextengine";

/** What a keeper is set to. */
export interface KeeperOptions {
  /** Whose sessions these are. `ai-sdk` by default. */
  agentId?: string;
  /** The model's context window in tokens. By default what the service knows of the model. */
  window?: number;
  /** How long a call of the model waits for one call of the service, in milliseconds. 2,000 by default. */
  patienceMs?: number;
  /** Is told why the model gets the host's own list. By default it goes to the console. */
  warn?: (text: string, error: unknown) => void;
}

/** How one middleware differs. */
export interface MiddlewareOptions {
  /** The session, or what names it. A call's own `providerOptions.contextengine.sessionId` wins. Neither: nothing is done. */
  sessionId?: string | (() => string | undefined);
}

/** How one `prepareStep` differs. */
export interface PrepareStepOptions {
  /** The session. */
  sessionId: string;
  /** The system prompt, which `prepareStep` is not shown: what the service says beside the messages goes behind it. */
  system?: string;
  /** Tokens of the tools' definitions, which `prepareStep` is not shown either. */
  toolTokens?: number;
}

/** A `prepareStep` for tools of any kind. */
export type PrepareStep = (step: {
  messages: ModelMessage[];
  model: LanguageModel;
}) => Promise<{ messages?: ModelMessage[]; system?: string }>;

/** What stands outside the conversation, and whose call it is. */
interface Outside {
  system: string;
  model: string;
  tools?: CallOptions["tools"];
  toolTokens?: number | undefined;
  outputTokens?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A conversation, as far as it is remembered. */
class Talk {
  /** What was sent last. Undefined: nothing, or the list as it was. */
  last: Fitting | undefined;
  /** What the next context is to fit, since one was refused. */
  less: Budget | undefined;
  /** Replies that are being stored. A call that was given up may still be at it when the host makes the next one. */
  private storing: Promise<unknown> = Promise.resolve();
  private readonly seen = new Sightings();

  constructor(readonly session: Session) {}

  /** Stores a reply. */
  async store(call: () => Promise<void>): Promise<void> {
    const storing = call();
    this.storing = Promise.allSettled([this.storing, storing]);
    await storing;
  }

  /** Waits until all replies are stored, or could not be. */
  async stored(): Promise<void> {
    await this.storing;
  }

  /** The host's list as the service takes it, and what tells its messages apart. Raises FormatError. */
  read(list: readonly ModelMessage[]): { live: { messages: Message[]; storeNew: true; takesBack: true }; keys: string[] } {
    const messages = kept(list);
    const keys = messages.map(keyOf);
    this.seen.time(messages, keys, timestampNow());
    return { live: { messages, storeNew: true, takesBack: true }, keys };
  }
}

/** A context that fits. */
interface Fitting {
  messages: ModelMessage[];
  /** What the service says beside the messages. Empty: nothing. */
  addition: string;
  response: AssembleResponse;
  budget: Budget;
}

/** A call of the model. */
interface Call {
  talk: Talk;
  fitting: Fitting | undefined;
  /** What the host called it with. */
  given: CallOptions;
}

/**
 * Keeps conversations of the AI SDK in the service and has the model sent what fits. The host's list is the truth: it is handed
 * over before each call of the model, what is new in it is stored, what it ends without is taken back. While the service is
 * away the model gets that list, whole steps within the window, and what was said is stored once the service is back.
 */
export class Keeper {
  private readonly talks = new Map<string, Talk>();

  constructor(
    private readonly client: Client,
    private readonly options: KeeperOptions = {},
  ) {}

  /** For `wrapLanguageModel`: stores what is new, sends what fits, stores the reply and what it was billed. */
  middleware({ sessionId }: MiddlewareOptions = {}): LanguageModelMiddleware {
    const calls = new WeakMap<object, Call>();
    return {
      specificationVersion: "v3",
      transformParams: async ({ params, model }) => {
        const id = named(params) ?? (typeof sessionId === "function" ? sessionId() : sessionId);
        if (!id) return params;
        const talk = this.talk(id);
        const { changed, fitting } = await this.fitted(talk, params, model);
        calls.set(changed, { talk, fitting, given: params });
        return changed;
      },
      wrapGenerate: async ({ doGenerate, params, model }) => {
        const call = calls.get(params);
        if (!call) return doGenerate();
        const result = await this.asked(call, model, doGenerate, (less) => model.doGenerate(less));
        await this.replied(call.talk, call.fitting, replyOf(result));
        return result;
      },
      wrapStream: async ({ doStream, params, model }) => {
        const call = calls.get(params);
        if (!call) return doStream();
        const { stream, ...more } = await this.streamed(call, model, doStream);
        const listener = new Listener();
        const listening = new TransformStream<StreamPart, StreamPart>({
          transform: (part, controller) => {
            listener.hear(part);
            controller.enqueue(part);
          },
          flush: async () => {
            const { reply } = listener;
            // What was given up is in no list of the host's; a provider may go on with it all the same.
            if (reply && !params.abortSignal?.aborted) await this.replied(call.talk, call.fitting, reply);
          },
        });
        return { stream: stream.pipeThrough(listening), ...more };
      },
    };
  }

  /** For `generateText` and `streamText`, where the model cannot be wrapped. Tell `ended` what came of it. */
  prepareStep({ sessionId, system = "", toolTokens }: PrepareStepOptions): PrepareStep {
    return async ({ messages, model }) => {
      const named = typeof model === "string" ? model : model.modelId;
      const fitting = await this.fitting(this.talk(sessionId), messages, { system, model: named, toolTokens });
      if (!fitting) return {};
      const { addition } = fitting;
      if (!addition) return { messages: fitting.messages };
      if (system) return { messages: fitting.messages, system: `${system}\n\n${addition}` };
      // The system prompt is the caller's, and not known here: nothing may be put in its place.
      return { messages: [{ role: "user", content: addition }, ...fitting.messages] };
    };
  }

  /**
   * Whether the provider refused a call of the model for its length, and another one can be made with less: the session is
   * compacted, and the next context of it holds half of what was shown. For `prepareStep`, which is not shown what a call fails with;
   * the middleware asks by itself.
   */
  async refused(sessionId: string, error: unknown): Promise<boolean> {
    return this.shortened(this.talk(sessionId), error, undefined);
  }

  /**
   * Stores what a run of `generateText` or `streamText` with `prepareStep` ended with, and says that the turn is over. `messages`:
   * the whole list, `[...messages, ...result.response.messages]`; in version 7 of the SDK `[...messages, ...result.responseMessages]`.
   */
  async ended(sessionId: string, messages: readonly ModelMessage[]): Promise<void> {
    const talk = this.talk(sessionId);
    const { session } = talk;
    await this.trying("what was said is stored with the next call", undefined, async () => {
      const { live } = talk.read(messages);
      await session.assemble({ live }, { ...this.patience, fallback: false });
      await session.afterTurn({}, { ...this.patience, fallback: false });
    });
  }

  private get patience(): { timeoutMs: number } {
    return { timeoutMs: this.options.patienceMs ?? 2_000 };
  }

  private talk(sessionId: string): Talk {
    const { agentId = "ai-sdk" } = this.options;
    const talk = this.talks.get(sessionId) ?? new Talk(this.client.session({ agentId, sessionId }));
    this.talks.delete(sessionId);
    this.talks.set(sessionId, talk);
    const [oldest] = this.talks.keys();
    if (this.talks.size > MOST && oldest !== undefined) this.talks.delete(oldest);
    return talk;
  }

  /** What the model answers; once more with less where the provider refuses the prompt for its length. */
  private async asked<Result>(
    call: Call,
    model: Model,
    first: () => PromiseLike<Result>,
    again: (less: CallOptions) => PromiseLike<Result>,
  ): Promise<Result> {
    try {
      return await first();
    } catch (error) {
      const less = await this.shorter(call, model, error);
      if (!less) throw error;
      return again(less);
    }
  }

  /** The same of a stream, which may be refused as it begins. */
  private async streamed(call: Call, model: Model, doStream: () => PromiseLike<Streamed>): Promise<Streamed> {
    let refused = false;
    const again = (less: CallOptions) => {
      refused = true;
      return model.doStream(less);
    };
    const told = await this.asked(call, model, doStream, again);
    if (refused) return told;
    const { stream, refusal } = await opened(told.stream);
    const less = refusal === undefined ? undefined : await this.shorter(call, model, refusal);
    if (!less) return { ...told, stream };
    await stream.cancel();
    return model.doStream(less);
  }

  /** A call that was refused, with less. Undefined: it was refused for something else, or there is nobody to ask for less. */
  private async shorter(call: Call, model: Model, error: unknown): Promise<CallOptions | undefined> {
    const { talk, given } = call;
    if (!(await this.shortened(talk, error, given.abortSignal))) return undefined;
    const { changed, fitting } = await this.fitted(talk, given, model);
    if (!fitting?.response.assemblyId) return undefined;
    call.fitting = fitting;
    return changed;
  }

  /** Has the next context of a conversation be half of what was refused. False: it was not, or that cannot be. */
  private async shortened(talk: Talk, error: unknown, signal: AbortSignal | undefined): Promise<boolean> {
    const { last, session } = talk;
    // Made without the service: there is nothing to halve.
    if (!last?.response.assemblyId || !isRefusal(error)) return false;
    const { budget, response } = last;
    const less = smaller(budget, response);
    const until = Date.now() + COMPACTION_MS;
    const options = () => ({ timeoutMs: Math.max(1, until - Date.now()), signal });
    let done = false;
    await this.trying("the call is not made again", signal, async () => {
      const { assemblyId } = response;
      await session.reportUsage({ assemblyId, overflow: { text: said(error) } }, { ...options(), fallback: false });
      try {
        await session.compact({ budget: less, force: true, forceReason: "overflow", trigger: "overflow" }, options());
      } catch (late) {
        // What fits is shown without it, too.
        if (!(late instanceof DeadlinePassed)) throw late;
      }
      talk.less = less;
      done = true;
    });
    return done;
  }

  /** A call of the model with a prompt that fits. */
  private async fitted(
    talk: Talk,
    params: CallOptions,
    model: Model,
  ): Promise<{ changed: CallOptions; fitting: Fitting | undefined }> {
    const spoken = params.prompt.findIndex(({ role }) => role !== "system");
    const leading = params.prompt.slice(0, spoken < 0 ? params.prompt.length : spoken) as SystemModelMessage[];
    const rest = params.prompt.slice(leading.length) as ModelMessage[];
    const outside = {
      system: leading.map(({ content }) => content).join("\n\n"),
      model: model.modelId,
      tools: params.tools,
      outputTokens: params.maxOutputTokens,
      signal: params.abortSignal,
    };
    const fitting = rest.length ? await this.fitting(talk, rest, outside) : undefined;
    if (!fitting) return { changed: { ...params }, fitting };
    // Behind what the provider has cached.
    const addition = fitting.addition ? [{ role: "system" as const, content: fitting.addition }] : [];
    const own = new Set<ModelMessage>(rest);
    const tags = (model.specificationVersion as string) === "v4";
    const messages = fitting.messages.map((message) => (own.has(message) ? message : prompted(message, tags)));
    const prompt = [...leading, ...addition, ...messages] as CallOptions["prompt"];
    return { changed: { ...params, prompt }, fitting };
  }

  /** What of a list fits. Undefined: it is sent as it is. */
  private async fitting(talk: Talk, list: readonly ModelMessage[], outside: Outside): Promise<Fitting | undefined> {
    let found: Fitting | undefined;
    await talk.stored();
    const budget = talk.less ?? budgetOf(this.options.window, outside);
    talk.less = undefined;
    const { signal } = outside;
    await this.trying("the model gets the list as it is", signal, async () => {
      const { live, keys } = talk.read(list);
      const options = { ...this.patience, signal, fallback: true };
      const { items, response, degraded } = await talk.session.assemble({ live, budget, model: outside.model }, options);
      if (degraded) this.warn("the model gets the list as far as it fits", degraded.error);
      found = { messages: shown(items, list, keys), addition: response.systemPromptAddition, response, budget };
    });
    talk.last = found;
    return found;
  }

  /** Stores a reply. What it fails with is no failure of the call: the host's list has the reply, and comes again. */
  private async replied(talk: Talk, fitting: Fitting | undefined, { message, goesOn, usage }: Reply): Promise<void> {
    if (!fitting) return;
    const { session } = talk;
    if (message) message.timestamp = timestampNow();
    const { budget } = fitting;
    const { assemblyId } = fitting.response;
    const options = { ...this.patience, fallback: false };
    const store = async () => {
      const messages = message ? [message] : [];
      if (!goesOn) {
        await session.afterTurn({ messages, budget, assemblyId, ...(usage ? { usage } : {}) }, options);
        return;
      }
      if (message) await session.ingest({ message }, options);
      if (usage) await session.reportUsage({ assemblyId, usage }, options);
    };
    await talk.store(() => this.trying("the reply is stored with the next call", undefined, store));
  }

  /** What no call of the model may fail for. One that its host has given up is no failure to be told of. */
  private async trying(otherwise: string, signal: AbortSignal | undefined, call: () => Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (!(error instanceof ContextEngineError) && !(error instanceof FormatError)) throw error;
      if (!signal?.aborted) this.warn(otherwise, error);
    }
  }

  private warn(otherwise: string, error: unknown): void {
    const { warn = console.warn } = this.options;
    warn(`contextengine: ${otherwise}: ${error instanceof Error ? error.message : String(error)}`, error);
  }
}

/** The session that a call names. */
function named({ providerOptions }: CallOptions): string | undefined {
  const id = providerOptions?.[OURS]?.["sessionId"];
  return typeof id === "string" && id ? id : undefined;
}

function budgetOf(window: number | undefined, { system, tools, toolTokens, outputTokens }: Outside): Budget {
  const definitions = (tools ?? []).map((tool) =>
    create(ToolDefinitionSchema, {
      name: tool.name,
      ...(tool.type === "function"
        ? { description: tool.description ?? "", inputSchemaJson: Buffer.from(JSON.stringify(tool.inputSchema)) }
        : {}),
    }),
  );
  const count = (name: string, tokens: number | undefined) => (tokens === undefined ? {} : { [name]: BigInt(tokens) });
  const value = {
    systemPrompt: { case: "systemPromptText" as const, value: system },
    tools: definitions,
    ...count("window", window),
    ...count("toolTokens", toolTokens),
    ...count("outputReserve", outputTokens),
  };
  return create(BudgetSchema, { kind: { case: "window", value } });
}
