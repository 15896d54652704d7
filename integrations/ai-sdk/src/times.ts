/** When messages were made of which the host says nothing: the AI SDK's have no times. Pure. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Message, Role } from "@contextengine/client/types";

/** When the messages of one conversation were seen first, whose list comes whole each time. */
export class Sightings {
  private seen: { key: string; time: Timestamp | undefined }[] = [];

  /**
   * Gives each message the time at which it was handed over first, so that summaries say of when they are. What a list holds up to
   * its newest reply when it is the first that is seen is of nobody knows when, and stays as it is. `keys`: what tells the
   * messages apart, one by one.
   */
  time(messages: readonly Message[], keys: readonly string[], now: Timestamp): void {
    const differs = keys.findIndex((key, at) => key !== this.seen[at]?.key);
    const same = differs < 0 ? keys.length : differs;
    const fresh = this.seen.length ? same : messages.findLastIndex(({ role }) => role === Role.ASSISTANT) + 1;
    this.seen = keys.map((key, at) => ({ key, time: at < same ? this.seen[at]?.time : at < fresh ? undefined : now }));
    for (const [at, message] of messages.entries()) {
      const time = this.seen[at]?.time;
      if (time) message.timestamp ??= time;
    }
  }
}
