import { isIP } from "node:net";

const QUICK = 15_000;
const LONG = 60_000;
const SLOW = 600_000;

/** How often a call is sent at most that is refused, or that asks for a service known to be away. */
export const MAX_ATTEMPTS = 4;
/** For how long a service that is away is asked again, in milliseconds: a rolling restart takes less. */
export const RETRY_FOR = 10_000;

/** Deadlines of the rpcs that are not quick, in milliseconds, by `Service.Rpc`. Infinity: none. */
const TIMEOUTS: Record<string, number> = {
  "ContextEngine.Bootstrap": LONG,
  "ContextEngine.Ingest": LONG,
  "ContextEngine.IngestBatch": LONG,
  "ContextEngine.Assemble": LONG,
  "ContextEngine.AfterTurn": LONG,
  "ContextEngine.ShouldCompact": LONG,
  "ContextEngine.CallTool": LONG,
  "ContextEngine.EndSession": LONG,
  "ContextEngine.Compact": SLOW,
  "Sessions.Delete": LONG,
  "Sessions.Import": SLOW,
  "Sessions.Export": SLOW,
  "Sessions.Watch": Infinity,
  "Engines.Doctor": LONG,
  "Recall.Search": LONG,
  "Recall.Expand": LONG,
  "Projection.Project": LONG,
  "Runtime.Attach": Infinity,
};

/** An engine's tool may do anything, and what was said on a broken stream cannot be said again. */
const SENT_ONCE = new Set(["ContextEngine.CallTool", "Runtime.Attach"]);

/** The deadline of an rpc in milliseconds. */
export function defaultTimeout(name: string): number {
  return TIMEOUTS[name] ?? QUICK;
}

/** Whether an rpc may be sent again on UNAVAILABLE. */
export function isSafeTwice(name: string): boolean {
  return !SENT_ONCE.has(name);
}

/** gRPC's service config: a stream that is safe to open twice is opened again on UNAVAILABLE, after 0.1 to 2 seconds. */
export function serviceConfig(streams: readonly string[]): string {
  const retried = streams.filter(isSafeTwice).map((name) => name.split("."));
  return JSON.stringify({
    loadBalancingConfig: [],
    methodConfig: [
      {
        name: retried.map(([service, method]) => ({ service: `contextengine.v1.${service}`, method })),
        retryPolicy: {
          maxAttempts: MAX_ATTEMPTS,
          initialBackoff: "0.1s",
          maxBackoff: "1s",
          backoffMultiplier: 3,
          retryableStatusCodes: ["UNAVAILABLE"],
        },
      },
    ],
  });
}

/** Whether a gRPC target can only be this machine. */
export function isLoopback(target: string): boolean {
  if (target.startsWith("unix:")) return true;
  const address = target.slice(target.lastIndexOf("/") + 1).replace(/^(dns|ipv4|ipv6):/, "");
  for (const host of [address.slice(0, Math.max(0, address.lastIndexOf(":"))), address]) {
    const bare = host.replace(/^\[|\]$/g, "");
    if (bare === "localhost" || bare === "::1" || (isIP(bare) === 4 && bare.startsWith("127."))) return true;
  }
  return false;
}
