import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type ServiceError, status } from "@grpc/grpc-js";

const DOMAIN = "contextengine";

/** A field of the request that is wrong: its path, and what would be right. */
export interface Violation {
  field: string;
  description: string;
}

/** What is known of a failure besides its text. */
export interface Failure {
  /** The gRPC status. */
  code: status;
  /** A value of contextengine.v1.ErrorReason without its prefix. Empty: the transport failed and not the service. */
  reason?: string;
  /** The fields that are wrong. */
  violations?: Violation[];
  /** Facts of the failure by name, as ErrorReason documents them. */
  metadata?: Record<string, string>;
  /** When to try again, in milliseconds from now. Undefined: the server did not say. */
  retryAfterMs?: number | undefined;
}

/** A call that failed. Subclasses are named for the reason; this class itself means a reason without a class here. */
export class ContextEngineError extends Error {
  readonly code: status;
  readonly reason: string;
  readonly violations: Violation[];
  readonly metadata: Record<string, string>;
  readonly retryAfterMs: number | undefined;
  /** What went wrong, for people, without the reason. */
  readonly details: string;

  constructor(details: string, failure: Failure) {
    super(`${failure.reason || status[failure.code]}: ${details}`);
    this.name = new.target.name;
    this.details = details;
    this.code = failure.code;
    this.reason = failure.reason ?? "";
    this.violations = failure.violations ?? [];
    this.metadata = failure.metadata ?? {};
    this.retryAfterMs = failure.retryAfterMs;
  }
}

/** A field is missing, malformed or out of its range; `violations` names it. */
export class InvalidField extends ContextEngineError {}
/** Fields that exclude each other were given; `violations` names them. */
export class ContradictoryFields extends ContextEngineError {}
/** The request's bytes are not a message of its type. */
export class MalformedRequest extends ContextEngineError {}
/** The budget leaves nothing: reserves reach the window. */
export class BudgetImpossible extends ContextEngineError {}
/** No such session for this tenant and agent. */
export class SessionNotFound extends ContextEngineError {}
/** No such message, summary, proposal or other row in the session. */
export class RowNotFound extends ContextEngineError {}
/** A message id is stored with other content; `metadata` has the index, the id and both hashes. */
export class MessageConflict extends ContextEngineError {}
/** The request id was used for another request. */
export class RequestIdReused extends ContextEngineError {}
/** An import found a session that holds other messages. */
export class SessionExists extends ContextEngineError {}
/** The chosen engine does not exist; `metadata` has the ids that do. */
export class UnknownEngine extends ContextEngineError {}
/** The session's revision is not the expected one; `metadata` has both. */
export class RevisionMismatch extends ContextEngineError {}
/** Live forks or continuations stand on the session to delete. */
export class HasDependents extends ContextEngineError {}
/** Another writer won the session more often than was retried. Nothing was changed: send again. */
export class LostRace extends ContextEngineError {}
/** A message, batch or session is larger than its limit; `metadata` has both. */
export class TooLarge extends ContextEngineError {}
/** Too many calls at once. Nothing was done; `retryAfterMs` says when to try again. */
export class Overloaded extends ContextEngineError {}
/** A spending cap is reached; `metadata` has the scope, the use, the cap and when it passes again. */
export class BudgetSpent extends ContextEngineError {}
/** The server cannot be reached or cannot serve now. */
export class Unavailable extends ContextEngineError {}
/** The server drains; `retryAfterMs` says when to try another. */
export class Draining extends Unavailable {}
/** The store cannot write now. Nothing was changed. */
export class StoreUnavailable extends Unavailable {}
/** No token, or one that is not known. */
export class Unauthenticated extends ContextEngineError {}
/** The token's role does not allow this call. */
export class PermissionDenied extends ContextEngineError {}
/** The engine threw, or its plan broke a law; `metadata` has the engine, the operation and the law. */
export class EngineFailed extends ContextEngineError {}
/** The rpc is part of the contract and not served by this version of the server. */
export class NotYetServed extends ContextEngineError {}
/** A defect of the service; `metadata` has an id to look for in its log. */
export class Defect extends ContextEngineError {}
/** The deadline passed before the work was done, or before a revision was reached. */
export class DeadlinePassed extends ContextEngineError {}
/** The session was deleted while it was read as of a revision. */
export class SessionReplaced extends ContextEngineError {}
/** A stored row does not match its hash. */
export class CorruptRow extends ContextEngineError {}
/** A resume position is older than what the server still has. */
export class PositionLost extends ContextEngineError {}
/** What a projection may not cut exceeds the target's limit. */
export class ProjectionImpossible extends ContextEngineError {}
/** The spawn that a token names is over; `metadata` has why. */
export class SpawnEnded extends ContextEngineError {}
/** A child would be too deep, or its parent has too many live ones; `metadata` has which, and the limit. */
export class SpawnLimit extends ContextEngineError {}
/** The host cannot do what the chosen engine needs; `metadata` has what is missing. */
export class HostCapabilityMissing extends ContextEngineError {}
/** The service is away and the client's queue holds all that it may. Raised by the client itself. */
export class QueueFull extends ContextEngineError {}

const BY_REASON: Record<string, typeof ContextEngineError> = {
  INVALID_FIELD: InvalidField,
  CONTRADICTORY_FIELDS: ContradictoryFields,
  MALFORMED_REQUEST: MalformedRequest,
  BUDGET_IMPOSSIBLE: BudgetImpossible,
  SESSION_NOT_FOUND: SessionNotFound,
  ROW_NOT_FOUND: RowNotFound,
  MESSAGE_CONFLICT: MessageConflict,
  REQUEST_ID_REUSED: RequestIdReused,
  SESSION_EXISTS: SessionExists,
  UNKNOWN_ENGINE: UnknownEngine,
  REVISION_MISMATCH: RevisionMismatch,
  HAS_DEPENDENTS: HasDependents,
  LOST_RACE: LostRace,
  TOO_LARGE: TooLarge,
  OVERLOADED: Overloaded,
  BUDGET_SPENT: BudgetSpent,
  DRAINING: Draining,
  STORE_UNAVAILABLE: StoreUnavailable,
  UNAUTHENTICATED: Unauthenticated,
  PERMISSION_DENIED: PermissionDenied,
  ENGINE_FAILED: EngineFailed,
  NOT_YET_SERVED: NotYetServed,
  DEFECT: Defect,
  DEADLINE: DeadlinePassed,
  SESSION_REPLACED: SessionReplaced,
  CORRUPT_ROW: CorruptRow,
  POSITION_LOST: PositionLost,
  PROJECTION_IMPOSSIBLE: ProjectionImpossible,
  SPAWN_ENDED: SpawnEnded,
  SPAWN_LIMIT: SpawnLimit,
  HOST_CAPABILITY_MISSING: HostCapabilityMissing,
};

/** Failures that never reached the service, and so carry no reason. */
const BY_CODE: Partial<Record<status, typeof ContextEngineError>> = {
  [status.UNAVAILABLE]: Unavailable,
  [status.DEADLINE_EXCEEDED]: DeadlinePassed,
  [status.UNAUTHENTICATED]: Unauthenticated,
  [status.PERMISSION_DENIED]: PermissionDenied,
};

/** Whether an error says that the service is away, rather than that something must be mended. */
export function isBorne(error: unknown): error is ContextEngineError {
  if (!(error instanceof ContextEngineError)) return false;
  const { code, reason } = error;
  if (code === status.UNAVAILABLE || code === status.DEADLINE_EXCEEDED) return true;
  if (error instanceof Overloaded || error instanceof LostRace) return true;
  return (code === status.UNKNOWN || code === status.INTERNAL) && !reason;
}

/** The typed error for what gRPC raised; other errors as they are. */
export function typed(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ContextEngineError || !("code" in error) || !("metadata" in error)) return error;
  const raised = error as ServiceError;
  const failure: Failure = { code: raised.code, violations: [] };
  const [encoded] = raised.metadata.get("grpc-status-details-bin");
  if (encoded instanceof Uint8Array) readStatus(encoded, failure);
  const kind = failure.reason ? BY_REASON[failure.reason] : BY_CODE[raised.code];
  return new (kind ?? ContextEngineError)(raised.details || "no details", failure);
}

/** Reads the details of a google.rpc.Status. */
function readStatus(encoded: Uint8Array, failure: Failure): void {
  each(encoded, (field, reader) => {
    if (field !== 3) return false;
    let type = "";
    let value = new Uint8Array();
    each(reader.bytes(), (inner, any) => {
      if (inner === 1) type = any.string();
      else if (inner === 2) value = new Uint8Array(any.bytes());
      else return false;
      return true;
    });
    READERS[type.slice(type.lastIndexOf("/") + 1)]?.(value, failure);
    return true;
  });
}

const READERS: Record<string, (value: Uint8Array, failure: Failure) => void> = {
  "google.rpc.ErrorInfo": (value, failure) => {
    let [reason, domain] = ["", ""];
    const metadata: Record<string, string> = {};
    each(value, (field, reader) => {
      if (field === 1) reason = reader.string();
      else if (field === 2) domain = reader.string();
      else if (field === 3) {
        const [key, entry] = strings(reader.bytes());
        metadata[key] = entry;
      } else return false;
      return true;
    });
    if (domain === DOMAIN) Object.assign(failure, { reason: reason.replace(/^ERROR_REASON_/, ""), metadata });
  },
  "google.rpc.BadRequest": (value, failure) => {
    each(value, (field, reader) => {
      if (field !== 1) return false;
      const [name, description] = strings(reader.bytes());
      failure.violations?.push({ field: name, description });
      return true;
    });
  },
  "google.rpc.RetryInfo": (value, failure) => {
    each(value, (field, reader) => {
      if (field !== 1) return false;
      let milliseconds = 0;
      each(reader.bytes(), (inner, duration) => {
        if (inner === 1) milliseconds += Number(duration.int64()) * 1000;
        else if (inner === 2) milliseconds += duration.int32() / 1e6;
        else return false;
        return true;
      });
      failure.retryAfterMs = milliseconds;
      return true;
    });
  },
};

/** Reads field by field; what `take` does not know is skipped. */
function each(encoded: Uint8Array, take: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(encoded);
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (!take(field, reader)) reader.skip(wire);
  }
}

/** The fields 1 and 2, texts both. */
function strings(encoded: Uint8Array): [string, string] {
  const found: [string, string] = ["", ""];
  each(encoded, (field, reader) => {
    if (field !== 1 && field !== 2) return false;
    found[field - 1] = reader.string();
    return true;
  });
  return found;
}
