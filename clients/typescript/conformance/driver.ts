/** The driver of the TypeScript client; see tests/conformance/protocol.md. */
import { AsyncLocalStorage } from "node:async_hooks";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { type Context, context, createTraceState, ROOT_CONTEXT, trace } from "@opentelemetry/api";

import * as f from "../src/formats/index.js";
import { Client, ContextEngineError, InvalidField, makeUp, newId, type Session, user } from "../src/index.js";
import * as t from "../src/types.js";

type Asked = Record<string, any>;

/** Methods of the handle that are not named like their rpcs. */
const RPCS: Record<string, string> = {
  reset: "resetSession",
  end: "endSession",
  dispose: "disposeSession",
  status: "getStatus",
  prepare_subagent: "prepareSubagentSpawn",
  rollback_subagent: "rollbackSubagentSpawn",
  end_as_subagent: "endSubagent",
};
const SERVICES = [t.ContextEngine, t.Sessions, t.Engines, t.Recall, t.Projection, t.Runtime];

function read<Desc extends DescMessage>(schema: Desc, encoded: string): MessageShape<Desc> {
  return fromBinary(schema, new Uint8Array(Buffer.from(encoded, "base64")));
}

function written<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): string {
  return Buffer.from(toBinary(schema, message)).toString("base64");
}

class Driver {
  private client!: Client;
  private handles = new Map<string, Session>();
  private lending: Promise<void> | undefined;
  private stop = new AbortController();
  private jobs = 0;

  private handle({ agent_id: agentId, session_id: sessionId }: Asked): Session {
    const key = `${agentId}/${sessionId}`;
    let handle = this.handles.get(key);
    if (!handle) this.handles.set(key, (handle = this.client.session({ agentId, sessionId })));
    return handle;
  }

  async answer(asked: Asked): Promise<Asked> {
    const { session } = asked;
    switch (asked["op"]) {
      case "connect":
        return this.connect(asked["target"], asked["settings"]);
      case "call":
        return this.call(asked["rpc"], asked["request"]);
      case "together": {
        const one = () => this.call(asked["rpc"], asked["request"]).catch(told);
        return { answers: await Promise.all(Array.from({ length: asked["count"] }, one)) };
      }
      case "traced": {
        const [, traceId = "", spanId = "", flags = ""] = asked["traceparent"].split("-");
        const traceState = createTraceState(asked["tracestate"]);
        const span = { traceId, spanId, traceFlags: parseInt(flags, 16), traceState, isRemote: true };
        const within = trace.setSpanContext(ROOT_CONTEXT, span);
        return context.with(within, () => this.call(asked["rpc"], asked["request"]));
      }
      case "session":
        return this.session(asked);
      case "assemble": {
        const request = read(t.AssembleRequestSchema, asked["request"]);
        const options = {
          delta: asked["delta"] ?? true,
          fallback: asked["fallback"] ?? undefined,
          hostMessages: asked["host_messages"]?.map((message: string) => read(t.MessageSchema, message)),
        };
        const assembly = await this.handle(session).assemble(request, options);
        const degraded = assembly.degraded && { reason: assembly.degraded.reason, unqueued: assembly.degraded.unqueued };
        return {
          items: assembly.items.map((item) => written(t.ItemSchema, item)),
          response: written(t.AssembleResponseSchema, assembly.response),
          degraded: degraded ?? null,
        };
      }
      case "project_codex": {
        const request = read(t.AssembleRequestSchema, asked["request"]);
        return { response: written(t.ProjectResponseSchema, await this.handle(session).projectCodex(request)) };
      }
      case "flush":
        await (session ? this.handle(session).flush() : this.client.flush());
        return {};
      case "pending":
        return {
          pending: session ? this.handle(session).pending : this.client.pending(),
          rejected: this.client.rejected.length,
        };
      case "import": {
        const messages = asked["messages"].map((value: string) => read(t.MessageSchema, value));
        const header = { case: "header" as const, value: { session: this.handle(session).ref } };
        const rest = messages.map((value: t.Message) => ({ kind: { case: "message" as const, value } }));
        const reply = await this.client.sessions.import([{ kind: header }, ...rest]);
        return { response: written(t.ImportResponseSchema, reply) };
      }
      case "export": {
        const messages: string[] = [];
        for await (const { kind } of this.handle(session).export()) {
          if (kind.case === "message") messages.push(written(t.MessageSchema, kind.value.message ?? create(t.MessageSchema)));
        }
        return { messages };
      }
      case "watch": {
        const events: string[] = [];
        for await (const event of this.handle(session).watch(asked["resume_position"])) {
          events.push(written(t.WatchResponseSchema, event));
          if (events.length === asked["count"]) break;
        }
        return { events };
      }
      case "lend":
        this.lend(asked);
        return {};
      case "lent":
        this.stop.abort();
        await this.lending;
        return { jobs: this.jobs };
      case "fallback":
        return {
          response: written(
            t.AssembleResponseSchema,
            makeUp(
              read(t.AssembleRequestSchema, asked["request"]),
              asked["held"].map((item: string) => read(t.ItemSchema, item)),
              asked["last"] === null ? undefined : read(t.AssembleResponseSchema, asked["last"]),
              asked["later"].map((message: string) => read(t.MessageSchema, message)),
            ),
          ),
        };
      case "text":
        try {
          const message = user(String.fromCharCode(...asked["utf16"]));
          await this.client.contextEngine.ingest({ session: { agentId: "text", sessionId: "text" }, message });
          return { refused: false };
        } catch (error) {
          if (!(error instanceof InvalidField)) throw error;
          return { refused: true };
        }
      case "format":
        return format(asked["format"], asked["in"], asked["out"]);
      case "id":
        return { id: newId() };
    }
    throw new Error(`unknown op ${asked["op"]}`);
  }

  private lend({ hello, text, delay, failures }: Asked): void {
    this.jobs = 0;
    this.stop = new AbortController();
    const complete = async (_: t.AttachResponse_Job, signal: AbortSignal) => {
      if (++this.jobs <= failures) throw new Error("not this one");
      await sleep(delay * 1000, undefined, { signal });
      return text as string;
    };
    const { $typeName, $unknown, ...fields } = read(t.AttachRequest_HelloSchema, hello);
    this.lending = this.client.lend(complete, { ...fields, signal: this.stop.signal });
    this.lending.catch(() => undefined); // told by `lent`
  }

  private connect(target: string, settings: Asked): Asked {
    this.client?.close();
    const timeouts = Object.entries<number>(settings["timeouts"] ?? {});
    this.client = new Client(target, {
      token: settings["token"] ?? "",
      insecure: settings["insecure"] ?? false,
      timeoutsMs: Object.fromEntries(timeouts.map(([name, seconds]) => [name, seconds * 1000])),
      fallback: settings["fallback"] ?? true,
      breaker: settings["breaker"] ?? false,
      ...("retry_for" in settings ? { retryForMs: settings["retry_for"] * 1000 } : {}),
      ...("max_queued_messages" in settings ? { maxQueuedMessages: settings["max_queued_messages"] } : {}),
      ...("max_queued_bytes" in settings ? { maxQueuedBytes: settings["max_queued_bytes"] } : {}),
      ...("spill_file" in settings ? { spillFile: settings["spill_file"] } : {}),
    });
    this.handles.clear();
    return {};
  }

  private async call(rpc: string, request: string): Promise<Asked> {
    const [service, name] = rpc.split(".");
    const method = SERVICES.find((found) => found.name === service)?.methods.find((found) => found.name === name);
    if (method?.methodKind !== "unary") throw new Error(`no unary rpc ${rpc}`);
    const reply = await this.client.transport.unary(method as never, read(method.input, request) as never);
    return { response: written(method.output, reply as never) };
  }

  private async session(asked: Asked): Promise<Asked> {
    const given: string = asked["method"];
    const local = given.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    const methods: any = { ...t.ContextEngine.method, delete: t.Sessions.method.delete };
    const { input, output } = methods[RPCS[given] ?? local];
    const request: any = read(input, asked["request"]);
    const options = { fallback: asked["fallback"] ?? undefined };
    const handle = this.handle(asked["session"]) as any;
    const args: unknown[] = { dispose: [], rollback_subagent: [request.spawnToken] }[given] ?? [request];
    return { response: written(output, await handle[local](...args, options)) };
  }
}

/** A format whose request is one list of that name. */
function under(name: string, taken: (list: any[]) => t.Message[], given: (messages: t.Message[]) => unknown) {
  return { taken: (request: Asked) => taken(request[name]), given: (messages: t.Message[]) => ({ [name]: given(messages) }) };
}

/** Reading a request, and writing one again. */
const FORMATS: Record<string, { taken(request: Asked): t.Message[]; given(messages: t.Message[]): unknown }> = {
  "openai.chat": under("messages", f.fromOpenAI, f.toOpenAI),
  "openai.responses": under("input", f.fromResponses, f.toResponses),
  "anthropic.messages": {
    taken: ({ messages, system }) => f.fromAnthropic(messages, system),
    given: f.toAnthropic,
  },
  "gemini.content": {
    taken: ({ contents, systemInstruction }) => f.fromGemini(contents, systemInstruction),
    given: f.toGemini,
  },
  pi: under("messages", f.fromPi, f.toPi),
  "pi.session": under("entries", f.fromPi, f.toPiEntries),
  "ai-sdk": under("messages", f.fromAiSdk, f.toAiSdk),
  langchain: under("messages", f.fromLangChain, f.toLangChain),
  "pydantic-ai": under("messages", f.fromPydanticAi, f.toPydanticAi),
};

function format(name: string, json: string, out: string[] | undefined): Asked {
  const { taken, given } = FORMATS[name]!;
  if (out === undefined) return { messages: taken(JSON.parse(json)).map((message) => written(t.MessageSchema, message)) };
  return { json: JSON.stringify(given(out.map((message) => read(t.MessageSchema, message)))) };
}

function told(error: unknown): Asked {
  if (!(error instanceof ContextEngineError)) return { defect: String(error instanceof Error ? error.stack : error) };
  const { reason, code, details: message, violations, metadata, retryAfterMs } = error;
  const retry = retryAfterMs === undefined ? null : retryAfterMs / 1000;
  return {
    error: { type: error.name, reason, code: status[code], message, violations, metadata, retry_after: retry },
  };
}

// What OpenTelemetry's SDK would do: keep the current context through asynchronous calls.
const current = new AsyncLocalStorage<Context>();
context.setGlobalContextManager({
  active: () => current.getStore() ?? ROOT_CONTEXT,
  with: (within, run, self, ...args) => current.run(within, () => run.apply(self, args)),
  bind: (_, target) => target,
  enable() {
    return this;
  },
  disable() {
    return this;
  },
});

const driver = new Driver();
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await driver.answer(JSON.parse(line)).catch(told);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
