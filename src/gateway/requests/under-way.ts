// Requests that are under way in this process. An array in which the last one takes a leaver's place: nothing of one that is over stays.
import { wallClock } from "../../lib/wall-clock.ts";
import type { HostExchange } from "../../walk/exchange.ts";

/** One of them, as an operator may see it: no word of it but the name of its model. */
export interface LiveRequest {
  readonly id: string;
  /** When it came, in Unix milliseconds. */
  readonly at: number;
  /** Since it came. */
  readonly ms: number;
  readonly frontend: string;
  readonly name: string;
  /** Undefined: its body is not read yet. */
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly key: string | undefined;
  /** The path of its account. */
  readonly account: string | undefined;
  readonly privacy: string;
  /** What it is at: its body is on its way, it waits for its turn or a hook, a provider is asked, or its answer leaves. */
  readonly phase: "arriving" | "waiting" | "asking" | "answering";
  /** The call that is under way, or was last, and which provider it asks. */
  readonly call: number | undefined;
  readonly provider: string | undefined;
}

/** Another process that may be asked; undefined: it does not answer in time. */
export interface LiveSource {
  underWay(): Promise<readonly LiveRequest[] | undefined>;
}

/** Of this process and of others. */
export async function allUnderWay(
  own: UnderWay,
  others: readonly LiveSource[],
): Promise<readonly LiveRequest[]> {
  const told = await Promise.all(others.map((each) => each.underWay()));
  return [own.list(), ...told].flatMap((some) => some ?? []);
}

/** Where one stands in the list of its process. */
export interface PlaceUnderWay {
  x: HostExchange | undefined;
  at: number;
}

/** Of one process, those that wait the longest. */
const MOST = 500;
/** Of what a client wrote, the beginning. */
const CHARACTERS = 256;

export class UnderWay {
  readonly #all: PlaceUnderWay[] = [];

  enter(x: HostExchange): PlaceUnderWay {
    const place = { x, at: this.#all.length };
    this.#all.push(place);
    return place;
  }

  leave(place: PlaceUnderWay): void {
    const last = this.#all.pop()!;
    place.x = undefined;
    if (last === place) return;
    this.#all[place.at] = last;
    last.at = place.at;
  }

  /** What a frontend answers by itself is over at once, and not among them. */
  list(): LiveRequest[] {
    const now = performance.now();
    const zero = wallClock() - now;
    return this.#all
      .flatMap(({ x }) => (x?.["~"].route ? [liveOf(x, now, zero)] : []))
      .sort((a, b) => a.at - b.at)
      .slice(0, MOST);
  }
}

/** `zero`: the wall clock when the other one began. */
function liveOf(x: HostExchange, now: number, zero: number): LiveRequest {
  const inner = x["~"];
  const model = inner.received && x.model.slice(0, CHARACTERS);
  return {
    id: x.id,
    at: Math.round(zero + inner.started),
    ms: Math.round(now - inner.started),
    frontend: x.frontend,
    name: x.name,
    model,
    stream: x.stream,
    key: x.identity?.id,
    account: inner.branch?.path,
    privacy: x.privacy,
    phase:
      inner.bytesOut > 0
        ? "answering"
        : inner.last !== undefined
          ? "asking"
          : inner.received === undefined
            ? "arriving"
            : "waiting",
    call: inner.last?.n,
    provider: inner.last?.provider,
  };
}
