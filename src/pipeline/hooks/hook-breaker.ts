// How a hook of a plugin has behaved lately, and whether it is asked at all: one that fails again and again is not, for a while that
// grows. One Conduct for each hook of each mounted plugin of a generation; a reload begins anew.
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { createFault } from "../../model/error.ts";
import type { QuarantinedHook } from "../../plugin/gateway-event.ts";

/** So many failures in a row, without one good answer between them. */
const FAILURES_TO_OPEN = 5;
/** Of one client's failures in a row only one in so many counts: what it sends must not take a hook away from all others. */
const SAME_CLIENT_WEIGHT = 4;
const MIN_OPEN_MS = 5_000;
const MAX_OPEN_MS = 60_000;
/** One that went to see and did not come back is given up. */
const PROBE_TIMEOUT_MS = 30_000;

/** Hears of the first failure too many, and of the first good answer after it. */
export interface HookBreakerListener {
  onQuarantined(of: QuarantinedHook, failures: number): void;
  onReleased(of: Pick<QuarantinedHook, "plugin" | "hook">): void;
}

export class HookBreaker {
  readonly plugin: string;
  readonly hook: string;
  /** Nothing is known against it. All that is looked at where that is so. */
  isHealthy = true;
  readonly #listener: HookBreakerListener;
  readonly #now: () => number;
  #consecutiveFailures = 0;
  #failures = 0;
  #lastClient: unknown;
  #sameClientFailures = 0;
  #isOpen = false;
  #reason: QuarantinedHook["reason"] = "threw";
  /** The monotonic clock. */
  #openUntil = 0;
  #openMs = 0;
  #probeDeadline = 0;

  constructor(
    of: { plugin: string; hook: string },
    tell: HookBreakerListener,
    now: () => number = () => performance.now(),
  ) {
    this.plugin = of.plugin;
    this.hook = of.hook;
    this.#listener = tell;
    this.#now = now;
  }

  /** It would not be asked now. */
  get isBlocked(): boolean {
    return this.#isOpen && this.#now() < Math.max(this.#openUntil, this.#probeDeadline);
  }

  /** Whether it may be asked now. In quarantine one request at a time goes to see. */
  tryEnter(): boolean {
    if (this.isBlocked) return false;
    if (this.#isOpen) this.#probeDeadline = this.#now() + PROBE_TIMEOUT_MS;
    return true;
  }

  /** `caller`: the client that it was asked for. */
  recordFailure(reason: QuarantinedHook["reason"], client: unknown): void {
    this.isHealthy = false;
    this.#failures++;
    this.#reason = reason;
    const now = this.#now();
    // What was under way when it began says nothing new.
    if (this.#isOpen) return now < this.#openUntil ? undefined : this.#open(now);
    this.#sameClientFailures = client === this.#lastClient ? this.#sameClientFailures + 1 : 0;
    this.#lastClient = client;
    if (this.#sameClientFailures % SAME_CLIENT_WEIGHT !== 0) return;
    if (++this.#consecutiveFailures >= FAILURES_TO_OPEN) this.#open(now);
  }

  /** It has done what it is there for. Called only where something was known against it. */
  recordSuccess(): void {
    const { plugin, hook } = this;
    const was = this.#isOpen;
    this.isHealthy = true;
    this.#isOpen = false;
    this.#consecutiveFailures =
      this.#failures =
      this.#sameClientFailures =
      this.#openMs =
      this.#probeDeadline =
        0;
    this.#lastClient = undefined;
    if (was) this.#listener.onReleased({ plugin, hook });
  }

  /** Undefined: it is asked as ever. */
  get quarantine(): QuarantinedHook | undefined {
    if (!this.#isOpen) return undefined;
    const { plugin, hook } = this;
    return { plugin, hook, reason: this.#reason, until: toUnixMs(this.#openUntil) };
  }

  /** What a request is told that would need it. */
  createError(): Error {
    const { plugin, hook } = this;
    return createFault(
      "unavailable",
      `${plugin} has failed again and again (${hook}). It is not asked for now, and without it nothing passes here.`,
      {
        code: "plugin_quarantined",
        retryAfterMs: Math.max(1_000, this.#openUntil - this.#now()),
        details: { plugin, hook },
      },
    );
  }

  #open(now: number): void {
    const first = !this.#isOpen;
    this.#isOpen = true;
    this.#consecutiveFailures = 0;
    this.#probeDeadline = 0;
    this.#openMs = Math.min(MAX_OPEN_MS, this.#openMs === 0 ? MIN_OPEN_MS : this.#openMs * 2);
    this.#openUntil = now + this.#openMs;
    if (first) this.#listener.onQuarantined(this.quarantine!, this.#failures);
  }
}

/** A moment of the monotonic clock, as people read it. */
const toUnixMs = (at: number): number => Math.round(performance.timeOrigin + at);

/** Those of all plugins of a process, of the generations that are there. */
export class HookBreakers {
  readonly #listener: HookBreakerListener;
  readonly #breakers: HookBreaker[] = [];

  constructor(tell: HookBreakerListener) {
    this.#listener = tell;
  }

  /** `scope`: of its generation, and it ends with that. */
  create(plugin: string, hook: string, scope: LifetimeScope): HookBreaker {
    const conduct = new HookBreaker({ plugin, hook }, this.#listener);
    this.#breakers.push(conduct);
    scope.defer(() => this.#breakers.splice(this.#breakers.indexOf(conduct), 1));
    return conduct;
  }

  /** For `status`. Of two generations the newer one is told of. */
  list(): QuarantinedHook[] {
    const found = this.#breakers.flatMap(({ quarantine }) => quarantine ?? []);
    return [...new Map(found.map((one) => [`${one.plugin} ${one.hook}`, one])).values()];
  }
}
