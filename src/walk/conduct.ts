// How a hook of a plugin has behaved lately, and whether it is asked at all: one that fails again and again is not, for a while that
// grows. One Conduct for each hook of each mounted plugin of a generation; a reload begins anew.
import type { Scope } from "../lib/scope.ts";
import { fault } from "../model/error.ts";
import type { QuarantinedHook } from "../plugin/notice.ts";

/** So many failures in a row, without one good answer between them. */
const IN_A_ROW = 5;
/** Of one client's failures in a row only one in so many counts: what it sends must not take a hook away from all others. */
const ONE_IN = 4;
const FIRST_MS = 5_000;
const MOST_MS = 60_000;
/** One that went to see and did not come back is given up. */
const PROBE_MS = 30_000;

/** Hears of the first failure too many, and of the first good answer after it. */
export interface ConductListener {
  quarantined(of: QuarantinedHook, failures: number): void;
  released(of: Pick<QuarantinedHook, "plugin" | "hook">): void;
}

export class Conduct {
  readonly plugin: string;
  readonly hook: string;
  /** Nothing is known against it. All that is looked at where that is so. */
  well = true;
  readonly #tell: ConductListener;
  readonly #now: () => number;
  #row = 0;
  #failures = 0;
  #last: unknown;
  #alone = 0;
  #open = false;
  #why: QuarantinedHook["why"] = "threw";
  /** The monotonic clock. */
  #until = 0;
  #openMs = 0;
  #probeEnds = 0;

  constructor(
    of: { plugin: string; hook: string },
    tell: ConductListener,
    now: () => number = () => performance.now(),
  ) {
    this.plugin = of.plugin;
    this.hook = of.hook;
    this.#tell = tell;
    this.#now = now;
  }

  /** It would not be asked now. */
  get away(): boolean {
    return this.#open && this.#now() < Math.max(this.#until, this.#probeEnds);
  }

  /** Whether it may be asked now. In quarantine one request at a time goes to see. */
  enter(): boolean {
    if (this.away) return false;
    if (this.#open) this.#probeEnds = this.#now() + PROBE_MS;
    return true;
  }

  /** `caller`: the client that it was asked for. */
  failed(why: QuarantinedHook["why"], caller: unknown): void {
    this.well = false;
    this.#failures++;
    this.#why = why;
    const now = this.#now();
    // What was under way when it began says nothing new.
    if (this.#open) return now < this.#until ? undefined : this.#begin(now);
    this.#alone = caller === this.#last ? this.#alone + 1 : 0;
    this.#last = caller;
    if (this.#alone % ONE_IN !== 0) return;
    if (++this.#row >= IN_A_ROW) this.#begin(now);
  }

  /** It has done what it is there for. Called only where something was known against it. */
  went(): void {
    const { plugin, hook } = this;
    const was = this.#open;
    this.well = true;
    this.#open = false;
    this.#row = this.#failures = this.#alone = this.#openMs = this.#probeEnds = 0;
    this.#last = undefined;
    if (was) this.#tell.released({ plugin, hook });
  }

  /** Undefined: it is asked as ever. */
  get state(): QuarantinedHook | undefined {
    if (!this.#open) return undefined;
    const { plugin, hook } = this;
    return { plugin, hook, why: this.#why, until: wall(this.#until) };
  }

  /** What a request is told that would need it. */
  refusal(): Error {
    const { plugin, hook } = this;
    return fault(
      "unavailable",
      `${plugin} has failed again and again (${hook}). It is not asked for now, and without it nothing passes here.`,
      {
        code: "plugin_quarantined",
        retryAfterMs: Math.max(1_000, this.#until - this.#now()),
        details: { plugin, hook },
      },
    );
  }

  #begin(now: number): void {
    const first = !this.#open;
    this.#open = true;
    this.#row = 0;
    this.#probeEnds = 0;
    this.#openMs = Math.min(MOST_MS, this.#openMs === 0 ? FIRST_MS : this.#openMs * 2);
    this.#until = now + this.#openMs;
    if (first) this.#tell.quarantined(this.state!, this.#failures);
  }
}

/** A moment of the monotonic clock, as people read it. */
const wall = (at: number): number => Math.round(performance.timeOrigin + at);

/** Those of all plugins of a process, of the generations that are there. */
export class Conducts {
  readonly #tell: ConductListener;
  readonly #of: Conduct[] = [];

  constructor(tell: ConductListener) {
    this.#tell = tell;
  }

  /** `scope`: of its generation, and it ends with that. */
  of(plugin: string, hook: string, scope: Scope): Conduct {
    const conduct = new Conduct({ plugin, hook }, this.#tell);
    this.#of.push(conduct);
    scope.defer(() => this.#of.splice(this.#of.indexOf(conduct), 1));
    return conduct;
  }

  /** For `status`. Of two generations the newer one is told of. */
  list(): QuarantinedHook[] {
    const found = this.#of.flatMap(({ state }) => state ?? []);
    return [...new Map(found.map((one) => [`${one.plugin} ${one.hook}`, one])).values()];
  }
}
