// Tracks the open requests of this process. When a request ends, the last entry of the array moves
// to its index, so no data of a finished request is kept.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";

/**
 * An open request as operators see it. Except for the model name, the entry contains nothing of the
 * request's content.
 */
export interface LiveRequest {
  readonly id: string;
  /** Arrival time, in Unix milliseconds. */
  readonly startedAt: number;
  /** Time since its arrival, in milliseconds. */
  readonly elapsedMs: number;
  readonly frontend: string;
  readonly action: string;
  /** Requested model. Undefined until the body has been read. */
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly key: string | undefined;
  /** Path of the account. */
  readonly account: string | undefined;
  readonly privacy: string;
  /**
   * Current phase: the body is being received, the request waits for admission or a hook, a
   * provider is being called, or the response is being sent.
   */
  readonly phase: "receiving" | "waiting" | "calling" | "responding";
  /** Number of the current or last call, and its provider. */
  readonly attempt: number | undefined;
  readonly provider: string | undefined;
}

/**
 * Another process. `readLiveRequests` returns undefined if the process does not respond in time.
 */
export interface LiveSource {
  readLiveRequests(): Promise<readonly LiveRequest[] | undefined>;
}

/** Returns the open requests of this process and of others. */
export async function readAllLiveRequests(
  own: InFlightRequests,
  others: readonly LiveSource[],
): Promise<readonly LiveRequest[]> {
  const lists = await Promise.all(others.map((each) => each.readLiveRequests()));
  return [own.listLongest(), ...lists].flatMap((some) => some ?? []);
}

/** Entry of a request in its process's list. */
export interface InFlightEntry {
  exchange: HostExchange | undefined;
  index: number;
}

/** Maximum number of listed requests per process. The oldest requests are listed. */
const MAX_LISTED = 500;
/** Maximum length of a text that a client wrote, in characters. Longer texts are truncated. */
const MAX_TEXT_CHARS = 256;

export class InFlightRequests {
  readonly #entries: InFlightEntry[] = [];

  add(x: HostExchange): InFlightEntry {
    const place = { exchange: x, index: this.#entries.length };
    this.#entries.push(place);
    return place;
  }

  remove(place: InFlightEntry): void {
    const last = this.#entries.pop()!;
    place.exchange = undefined;
    if (last === place) return;
    this.#entries[place.index] = last;
    last.index = place.index;
  }

  /** Cancels the requests that run in the background. Returns their number. */
  cancelBackground(): number {
    const running = this.#entries.flatMap(({ exchange }) => exchange?.backgroundRequest ?? []);
    for (const request of running) request.cancel();
    return running.length;
  }

  /**
   * Lists the oldest requests. Requests that a frontend answers itself are excluded, because they
   * end quickly.
   */
  listLongest(): LiveRequest[] {
    const now = performance.now();
    const zero = wallClock() - now;
    return this.#entries
      .flatMap(({ exchange }) =>
        exchange?.state.route ? [toLiveRequest(exchange, now, zero)] : [],
      )
      .sort((a, b) => a.startedAt - b.startedAt)
      .slice(0, MAX_LISTED);
  }
}

/** @param zero Wall clock time when the monotonic clock was 0. */
function toLiveRequest(x: HostExchange, now: number, zero: number): LiveRequest {
  const inner = x.state;
  const model = inner.body.received && x.model.slice(0, MAX_TEXT_CHARS);
  return {
    id: x.id,
    startedAt: Math.round(zero + inner.connection.startedAt),
    elapsedMs: Math.round(now - inner.connection.startedAt),
    frontend: x.frontend,
    action: x.action,
    model,
    stream: x.stream,
    key: x.identity?.id,
    account: inner.admission.account?.path,
    privacy: x.privacy,
    phase:
      inner.connection.bytesOut > 0
        ? "responding"
        : inner.calls.last !== undefined
          ? "calling"
          : inner.body.received === undefined
            ? "receiving"
            : "waiting",
    attempt: inner.calls.last?.n,
    provider: inner.calls.last?.provider,
  };
}
