// The circuit breaker of one hook. A hook that fails repeatedly is not called for a period that
// grows (quarantine). There is one `HookBreaker` for each hook of each mounted plugin in a config
// generation. A reload resets it.
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { createFault } from "../../model/error.ts";
import type { QuarantinedHook } from "../../plugin/gateway-event.ts";

/** Consecutive failures that open the breaker. */
const FAILURES_TO_OPEN = 5;
/**
 * Number of consecutive failures of one client that count as one failure. The content of one client
 * must not disable a hook for all others.
 */
const SAME_CLIENT_WEIGHT = 4;
const MIN_OPEN_MS = 5_000;
const MAX_OPEN_MS = 60_000;
/** Time in milliseconds after which a probe without a result is abandoned. */
const PROBE_TIMEOUT_MS = 30_000;

/** Called when the breaker opens, and on the first success after that. */
export interface HookBreakerListener {
  onQuarantined(of: QuarantinedHook, failures: number): void;
  onReleased(of: Pick<QuarantinedHook, "plugin" | "hook">): void;
}

export class HookBreaker {
  readonly plugin: string;
  readonly hook: string;
  /** Whether no failure is recorded. Other state is read only if this is false. */
  isHealthy = true;
  readonly #listener: HookBreakerListener;
  readonly #now: () => number;
  #consecutiveFailures = 0;
  #failures = 0;
  #lastClient: unknown;
  #sameClientFailures = 0;
  #isOpen = false;
  #reason: QuarantinedHook["reason"] = "threw";
  /** Time on the monotonic clock until which the breaker is open, in milliseconds. */
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

  /** Whether the hook would not be called now. */
  get isBlocked(): boolean {
    return this.#isOpen && this.#now() < Math.max(this.#openUntil, this.#probeDeadline);
  }

  /**
   * Returns whether the hook may be called now. During quarantine, one request at a time is let
   * through as a probe.
   */
  tryEnter(): boolean {
    if (this.isBlocked) return false;
    if (this.#isOpen) this.#probeDeadline = this.#now() + PROBE_TIMEOUT_MS;
    return true;
  }

  /** Records a failure. `client`: the client whose request the hook handled. */
  recordFailure(reason: QuarantinedHook["reason"], client: unknown): void {
    this.isHealthy = false;
    this.#failures++;
    this.#reason = reason;
    const now = this.#now();
    // Failures of calls that started before the breaker opened are no new evidence.
    if (this.#isOpen) return now < this.#openUntil ? undefined : this.#open(now);
    this.#sameClientFailures = client === this.#lastClient ? this.#sameClientFailures + 1 : 0;
    this.#lastClient = client;
    if (this.#sameClientFailures % SAME_CLIENT_WEIGHT !== 0) return;
    if (++this.#consecutiveFailures >= FAILURES_TO_OPEN) this.#open(now);
  }

  /** Records a success. Called only if a failure was recorded. */
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

  /** The current quarantine. Undefined if the hook is called as usual. */
  get quarantine(): QuarantinedHook | undefined {
    if (!this.#isOpen) return undefined;
    const { plugin, hook } = this;
    return { plugin, hook, reason: this.#reason, until: toUnixMs(this.#openUntil) };
  }

  /** Creates the error for a request that needs the hook. */
  createError(): Error {
    const { plugin, hook } = this;
    return createFault(
      "unavailable",
      `${plugin} has failed repeatedly (${hook}) and is temporarily disabled. Requests that require it are rejected.`,
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

/** Converts a time of the monotonic clock to a Unix timestamp in milliseconds. */
const toUnixMs = (at: number): number => Math.round(performance.timeOrigin + at);

/** The hook breakers of all plugins in a process, across config generations that still run. */
export class HookBreakers {
  readonly #listener: HookBreakerListener;
  readonly #breakers: HookBreaker[] = [];

  constructor(tell: HookBreakerListener) {
    this.#listener = tell;
  }

  /**
   * Creates a breaker. `scope` is the lifetime of its generation. At the end of this lifetime, the
   * breaker is removed.
   */
  create(plugin: string, hook: string, scope: LifetimeScope): HookBreaker {
    const conduct = new HookBreaker({ plugin, hook }, this.#listener);
    this.#breakers.push(conduct);
    scope.defer(() => this.#breakers.splice(this.#breakers.indexOf(conduct), 1));
    return conduct;
  }

  /**
   * Returns the quarantined hooks, for `status`. If two generations have the same hook, only the
   * hook of the newer generation is listed.
   */
  list(): QuarantinedHook[] {
    const found = this.#breakers.flatMap(({ quarantine }) => quarantine ?? []);
    return [...new Map(found.map((one) => [`${one.plugin} ${one.hook}`, one])).values()];
  }
}
