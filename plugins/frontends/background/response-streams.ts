// Streams of background responses that clients read. An owner can open a limited number of them.
import { fail, type RouteResponse } from "tollgate/plugin";
import type { Owner } from "../jobs/owned-records.ts";

/** Time in milliseconds after which a silent stream gets a comment. */
export const PING_MS = 15_000;
export const PING = ": ping\n\n";
/** Maximum number of streams that an owner reads at the same time, per process. */
const MAX_STREAMS = 100;

export class ResponseStreams {
  readonly #open = new Map<string, number>();

  /** Returns the response to a request for a stream. */
  respond(owner: Owner, events: AsyncGenerator<string, void>): RouteResponse {
    if ((this.#open.get(owner.name) ?? 0) >= MAX_STREAMS)
      fail("rate_limited", `More than ${MAX_STREAMS} streams of background responses are open.`, {
        code: "too_many_streams",
        retryAfterMs: 1_000,
      });
    return {
      status: 200,
      headers: {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
      },
      body: this.#count(owner, events),
    };
  }

  async *#count(owner: Owner, events: AsyncGenerator<string, void>) {
    this.#open.set(owner.name, (this.#open.get(owner.name) ?? 0) + 1);
    try {
      yield* events;
    } finally {
      const rest = this.#open.get(owner.name)! - 1;
      if (rest > 0) this.#open.set(owner.name, rest);
      else this.#open.delete(owner.name);
    }
  }
}

/** Reads `starting_after`: the number of the last event that the client has received. */
export function readStartingAfter(text: string | null): number {
  if (text === null) return -1;
  if (!/^\d{1,15}$/.test(text))
    fail("invalid", `starting_after must be a sequence number, not "${text.slice(0, 64)}".`, {
      param: "starting_after",
    });
  return Number(text);
}
