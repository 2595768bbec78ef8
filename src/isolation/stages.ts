// LentAnswers that pass by a plugin outside: their events go to it in batches, and of an `event` hook come back as it lets them pass.
import { Passing } from "../lib/passing.ts";
import { ERRORS, faultOf, type Fault } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import type { Call } from "../plugin/call.ts";
import { PluginFailure, type OutsideLink } from "./link.ts";
import { plainCall } from "./what-crosses.ts";

/** A way to the connection as it is now. */
export interface Connected {
  /** A promise where it is being made anew. Rejects where there is none. */
  link(): OutsideLink | Promise<OutsideLink>;
}
type Told = (link: OutsideLink, x: Call["exchange"]) => object;
type StopAnswer = (fault: Fault) => void;
type PassEvent = (event: ModelEvent) => void;

/** Events wait so long for others, so that a hundred of them are one frame. */
const BATCH_MS = 16;
const BATCH = 256;

/** The answers that pass by now, by their number. */
export class Stages {
  readonly #open = new Passing<Stage>();
  #last = 0;

  event(of: Connected, call: Call, next: PassEvent, stop: StopAnswer, about: Told) {
    return this.#begin(of, "event", call, stop, about, next);
  }

  watch(of: Connected, call: Call, stop: StopAnswer, about: Told) {
    return this.#begin(of, "watch", call, stop, about, undefined);
  }

  /** What it tells of them. Of one that is over it is not heeded: it could not know. */
  heard(name: string, given: unknown): void {
    const { stage: n, events, fault: said } = given as Record<string, unknown>;
    const stage = this.#open.get(String(n));
    if (!stage) return;
    if (name === "stop") stage.stopped(said);
    else if (Array.isArray(events)) stage.pass(events as readonly ModelEvent[]);
    else throw new Error("no events");
  }

  /** The plugin is gone: what passed by it does not pass on. */
  lost(): void {
    for (const stage of this.#open.values()) stage.lost();
  }

  #begin(
    of: Connected,
    hook: "event" | "watch",
    call: Call,
    stop: StopAnswer,
    about: Told,
    next: PassEvent | undefined,
  ): (event: ModelEvent) => undefined {
    const n = ++this.#last;
    const stage = new Stage(n, stop, next, () => this.#open.take(String(n)));
    this.#open.put(String(n), stage);
    call.signal.addEventListener("abort", () => stage.over(), { once: true });
    const begun = (link: OutsideLink) => stage.begin(link, { stage: n, hook, call, about });
    const link = of.link();
    if ("then" in link) void link.then(begun, () => stage.lost());
    else begun(link);
    return (event) => stage.take(event);
  }
}

class Stage {
  readonly #n: number;
  readonly #stop: StopAnswer;
  readonly #next: PassEvent | undefined;
  readonly #forget: () => void;
  #link: OutsideLink | undefined;
  #waiting: ModelEvent[] = [];
  #timer: NodeJS.Timeout | undefined;
  #over = false;
  #failed: PluginFailure | undefined;

  constructor(n: number, stop: StopAnswer, next: PassEvent | undefined, forget: () => void) {
    this.#n = n;
    this.#stop = stop;
    this.#next = next;
    this.#forget = forget;
  }

  begin(
    link: OutsideLink,
    of: { stage: number; hook: "event" | "watch"; call: Call; about: Told },
  ): void {
    if (this.#over) return;
    this.#link = link;
    link.busy++;
    const { stage, hook, call, about } = of;
    link.tell("stage", { stage, hook, ...about(link, call.exchange), call: plainCall(call) });
    this.#send();
  }

  take(event: ModelEvent): undefined {
    if (this.#failed) throw this.#failed;
    if (this.#over) return undefined;
    this.#waiting.push(event);
    // An end is waited for.
    if (event.type === "finish" || this.#waiting.length >= BATCH) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), BATCH_MS);
    return undefined;
  }

  pass(events: readonly ModelEvent[]): void {
    for (const event of events) {
      if (this.#over) return;
      try {
        this.#next?.(event);
      } catch (problem) {
        const { kind, message } = faultOf(problem) ?? LOST;
        return this.#ended({ kind, message });
      }
      if (event?.type === "finish") this.over();
    }
  }

  stopped(said: unknown): void {
    const { kind, message, code } = (said ?? {}) as Record<string, unknown>;
    const whole =
      typeof kind === "string" && Object.hasOwn(ERRORS, kind) && typeof message === "string";
    this.#ended(
      whole
        ? { kind: kind as Fault["kind"], message, ...(typeof code === "string" && { code }) }
        : LOST,
    );
  }

  /** Of one that only looks it is a failure of the next look, which an operator may let pass. */
  lost(): void {
    if (this.#next) return this.#ended(LOST);
    if (!this.#over) this.#failed = new PluginFailure(LOST.message);
    this.over();
  }

  over(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#waiting = [];
    this.#forget();
    if (!this.#link) return;
    this.#link.busy--;
    this.#link.tell("passed", { stage: this.#n });
  }

  #ended(why: Fault): void {
    if (this.#over) return;
    this.over();
    this.#stop(why);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#link || this.#waiting.length === 0) return;
    const events = this.#waiting;
    this.#waiting = [];
    this.#link.tell("events", { stage: this.#n, events });
    // What only looks has seen its last.
    if (!this.#next && events.at(-1)!.type === "finish") this.over();
  }
}

const LOST = {
  kind: "unavailable",
  message: "A plugin that this answer passes by is gone.",
  code: "plugin_failed",
} satisfies Fault;
