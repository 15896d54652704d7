import { setTimeout as sleep } from "node:timers/promises";

import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";

import { isBorne } from "./errors.js";
import type { Rpcs } from "./transport.js";
import {
  type AttachRequest,
  type AttachRequest_Completion,
  AttachRequest_CompletionSchema,
  type AttachRequest_HelloSchema,
  AttachRequestSchema,
  type AttachResponse,
  type AttachResponse_Job,
  type Runtime,
} from "./types.js";

/** Between two streams: three times as long after each that did not get through. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [100, 5_000];
/** A lease is extended after a third of its time, within these bounds: the clocks of two machines differ. */
const [OFTEN_MS, SELDOM_MS] = [1_000, 20_000];

/** What is said on one stream, in order, until it ends. */
class Said implements AsyncIterable<AttachRequest> {
  private waiting: AttachRequest[] = [];
  private wake = () => {};
  private ended = false;

  push(request: AttachRequest): void {
    this.waiting.push(request);
    this.wake();
  }

  end(): void {
    this.ended = true;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AttachRequest, void> {
    while (!this.ended) {
      const next = this.waiting.shift();
      if (next) yield next;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

/** A model's answer to a job: a text, or a completion that lacks no more than its ids. */
export type Answer = string | MessageInitShape<typeof AttachRequest_CompletionSchema>;
/** Completes a job. The signal is aborted when nobody wants the job any more. */
export type Complete = (job: AttachResponse_Job, signal: AbortSignal) => Promise<Answer>;

/** A model that is lent. Made by `Client.lend`. */
export class Lending {
  private said = new Said();
  private welcomed = false;
  private readonly answers = new Map<string, AttachRequest>();
  private readonly jobs = new Map<string, AbortController>();

  constructor(
    private readonly runtime: Rpcs<typeof Runtime>,
    private readonly hello: MessageInitShape<typeof AttachRequest_HelloSchema>,
    private readonly complete: Complete,
    private readonly failed: (job: AttachResponse_Job, error: unknown) => void,
  ) {}

  /** Works until the signal is aborted. Raises the error that no new stream would mend. */
  async run(signal: AbortSignal): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; ) {
      try {
        await this.serve(signal);
      } catch (error) {
        if (signal.aborted) break;
        if (!isBorne(error)) throw error;
      }
      if (this.welcomed) pause = FIRST_PAUSE_MS;
      await sleep(pause, undefined, { signal }).catch(() => undefined);
      pause = Math.min(3 * pause, LONGEST_PAUSE_MS);
    }
    for (const job of this.jobs.values()) job.abort();
  }

  /** One stream, to its end. */
  private async serve(signal: AbortSignal): Promise<void> {
    this.said = new Said();
    this.welcomed = false;
    this.said.push(create(AttachRequestSchema, { kind: { case: "hello", value: this.hello } }));
    for (const answer of this.answers.values()) this.said.push(answer);
    try {
      for await (const { kind } of this.runtime.attach(this.said, { signal })) this.hear(kind);
    } finally {
      this.said.end();
    }
  }

  private hear(kind: AttachResponse["kind"]): void {
    if (kind.case === "welcome") this.welcomed = true;
    else if (kind.case === "job") void this.work(kind.value);
    else if (kind.case === "receipt") this.answers.delete(kind.value.jobId);
    else if (kind.case === "cancel") this.jobs.get(kind.value.jobId)?.abort();
  }

  private async work(job: AttachResponse_Job): Promise<void> {
    const { jobId, leaseId } = job;
    const working = new AbortController();
    this.jobs.set(jobId, working);
    const left = job.leaseExpireTime ? timestampDate(job.leaseExpireTime).getTime() - Date.now() : 0;
    const keeping = setInterval(
      () => this.said.push(create(AttachRequestSchema, { kind: { case: "keepLease", value: { jobId, leaseId } } })),
      Math.min(Math.max(left / 3, OFTEN_MS), SELDOM_MS),
    );
    const value = await this.completed(job, working.signal);
    clearInterval(keeping);
    if (this.jobs.get(jobId) === working) this.jobs.delete(jobId);
    if (working.signal.aborted) return;
    Object.assign(value, { jobId, leaseId });
    const answer = create(AttachRequestSchema, { kind: { case: "completion", value } });
    this.answers.set(jobId, answer);
    this.said.push(answer);
  }

  private async completed(job: AttachResponse_Job, signal: AbortSignal): Promise<AttachRequest_Completion> {
    try {
      const answer = await this.complete(job, signal);
      const given = typeof answer === "string" ? { text: answer } : answer;
      return clone(AttachRequest_CompletionSchema, create(AttachRequest_CompletionSchema, given));
    } catch (error) {
      if (!signal.aborted) this.failed(job, error);
      return create(AttachRequest_CompletionSchema, { error: "model_failed", retryable: true });
    }
  }
}
