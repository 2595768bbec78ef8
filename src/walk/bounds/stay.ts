// What one request takes up of its process while it is here: a turn, a place among those of its key, and bytes. All are free
// again whichever way it ends.
import { fault } from "../../model/error.ts";
import { excess } from "../../model/excess.ts";
import { A_LIMIT } from "../accounts.ts";
import { blame } from "../upstream/blame.ts";
import type { Gate } from "./gate.ts";
import type { Room } from "./room.ts";
import type { Turnstile } from "./turnstile.ts";

/** Reading a body and reserving a call take less than this. */
const RETRY_MS = 1_000;
const SOON = { retryAfterMs: RETRY_MS } as const;

/** How many bytes may be held and how many requests may be inside at once, in the whole process. */
interface ProcessBounds {
  readonly gate: Gate;
  readonly room: Room;
  readonly turnstile: Turnstile;
}

export class Stay {
  #who = "";
  readonly #bounds: ProcessBounds;
  #held = 0;
  #inside: string[] | undefined;
  #entered = false;
  #walked = false;
  #written = false;

  constructor(bounds: ProcessBounds) {
    this.#bounds = bounds;
  }

  /** What was held before the key was known counts for no key. */
  belongs(who: string): void {
    if (this.#held === 0) this.#who = who;
  }

  /** Before anything is asked of it. Throws where the process can take nothing. */
  arrive(): void {
    this.#bounds.gate.arrive();
  }

  /** Its turn, now or when the promise resolves. Throws, or rejects, where there are too many. */
  enter(): Promise<void> | undefined {
    const turn = this.#bounds.gate.enter(this.#who);
    if (turn) return turn.then(() => void (this.#entered = true));
    this.#entered = true;
    return undefined;
  }

  /** How many bytes it holds. */
  get held(): number {
    return this.#held;
  }

  occupy(scope: string, most: number, quiet = false): void {
    if (!this.#bounds.turnstile.enter(scope, most))
      throw blame(
        fault(
          "rate_limited",
          quiet ? `${A_LIMIT}.` : `More than ${most} requests at once (${scope}).`,
          {
            code: "rate_limit_exceeded",
            ...SOON,
          },
        ),
        "gateway",
      );
    (this.#inside ??= []).push(scope);
  }

  /** Gives its places back: its call is counted by the ledger now, or it is over. */
  pass(): void {
    if (!this.#inside) return;
    for (const scope of this.#inside) this.#bounds.turnstile.leave(scope);
    this.#inside = undefined;
  }

  /** Asks for room before the bytes are there. */
  hold(bytes: number): void {
    if (!this.#bounds.room.take(this.#who, bytes, this.#held))
      throw blame(excess("inFlight", undefined, SOON), "gateway");
    this.#held += bytes;
  }

  /** Its walk is over. What it holds is free when its answer has left too. */
  walked(): void {
    this.pass();
    if (this.#entered) this.#bounds.gate.leave(this.#who);
    this.#walked = true;
    if (this.#written) this.#empty();
  }

  written(): void {
    this.#written = true;
    if (this.#walked) this.#empty();
  }

  #empty(): void {
    if (this.#held > 0) this.#bounds.room.leave(this.#who, this.#held);
    this.#held = 0;
  }
}
