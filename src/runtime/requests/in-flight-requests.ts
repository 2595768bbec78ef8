// Requests that are under way in this process. An array in which the last one takes a leaver's place: nothing of one that is over stays.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";

/** One of them, as an operator may see it: no word of it but the name of its model. */
export interface LiveRequest {
  readonly id: string;
  /** When it came, in Unix milliseconds. */
  readonly startedAt: number;
  /** Since it came. */
  readonly elapsedMs: number;
  readonly frontend: string;
  readonly action: string;
  /** Undefined: its body is not read yet. */
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly key: string | undefined;
  /** The path of its account. */
  readonly account: string | undefined;
  readonly privacy: string;
  /** What it is at: its body is on its way, it waits for its turn or a hook, a provider is asked, or its answer leaves. */
  readonly phase: "receiving" | "waiting" | "calling" | "responding";
  /** The call that is under way, or was last, and which provider it asks. */
  readonly attempt: number | undefined;
  readonly provider: string | undefined;
}

/** Another process that may be asked; undefined: it does not answer in time. */
export interface LiveSource {
  readLiveRequests(): Promise<readonly LiveRequest[] | undefined>;
}

/** Of this process and of others. */
export async function readAllLiveRequests(
  own: InFlightRequests,
  others: readonly LiveSource[],
): Promise<readonly LiveRequest[]> {
  const lists = await Promise.all(others.map((each) => each.readLiveRequests()));
  return [own.listLongest(), ...lists].flatMap((some) => some ?? []);
}

/** Where one stands in the list of its process. */
export interface InFlightEntry {
  exchange: HostExchange | undefined;
  index: number;
}

/** Of one process, those that wait the longest. */
const MAX_LISTED = 500;
/** Of what a client wrote, the beginning. */
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

  /** What a frontend answers by itself is over at once, and not among them. */
  listLongest(): LiveRequest[] {
    const now = performance.now();
    const zero = wallClock() - now;
    return this.#entries
      .flatMap(({ exchange }) =>
        exchange?.["~"].route ? [toLiveRequest(exchange, now, zero)] : [],
      )
      .sort((a, b) => a.startedAt - b.startedAt)
      .slice(0, MAX_LISTED);
  }
}

/** `zero`: the wall clock when the other one began. */
function toLiveRequest(x: HostExchange, now: number, zero: number): LiveRequest {
  const inner = x["~"];
  const model = inner.receivedBody && x.model.slice(0, MAX_TEXT_CHARS);
  return {
    id: x.id,
    startedAt: Math.round(zero + inner.startedAt),
    elapsedMs: Math.round(now - inner.startedAt),
    frontend: x.frontend,
    action: x.action,
    model,
    stream: x.stream,
    key: x.identity?.id,
    account: inner.account?.path,
    privacy: x.privacy,
    phase:
      inner.bytesOut > 0
        ? "responding"
        : inner.lastCall !== undefined
          ? "calling"
          : inner.receivedBody === undefined
            ? "receiving"
            : "waiting",
    attempt: inner.lastCall?.n,
    provider: inner.lastCall?.provider,
  };
}
