import { ERRORS, type Fault } from "../../model/error.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Candidate, CandidateRest } from "../../plugin/call.ts";
import type { RestingReading } from "../../plugin/readings.ts";

const REST_MS = { "credential+model": 1_000, target: 5_000, credential: 60_000 } as const;
const MOST_MS = 300_000;
/** A broken promise is not mended in a minute, and each try would break it for one more client. */
const DISTRUST_MS = 3_600_000;

/** What rests, why, and until when. `model` null: all of the credential's. */
export interface Rest {
  provider: string;
  credential: string;
  model: string | null;
  kind: Fault["kind"];
  until: number;
}

/** What answers again. */
export type Recovery = Pick<Rest, "provider" | "credential" | "model">;

/** Hears of each rest that begins or grows, and of the first answer after it. */
export interface RestListener {
  rests(rest: Rest): void;
  recovered(what: Recovery): void;
}

const SILENT: RestListener = { rests() {}, recovered() {} };
const MOST = 10_000;

/** Candidates that rest after a failure: they are tried last, never dropped. One per process, read live. */
export class RestingTargets {
  readonly #until = new Map<string, CandidateRest>();
  /** Credentials that were said to keep nothing, and upstream said otherwise. */
  readonly #distrusted = new Map<string, number>();
  /** What has failed and not answered since. A rest that is over by the clock is no recovery yet. */
  readonly #ailing = new BoundedMap<string, Recovery>(MOST);
  readonly #now: () => number;
  readonly #tell: RestListener;

  constructor(now: () => number = Date.now, tell: RestListener = SILENT) {
    this.#now = now;
    this.#tell = tell;
  }

  /** What rests is decided by the kind of failure, for how long by what upstream said of it. */
  failed(candidate: Candidate, fault: Fault): void {
    const what = ERRORS[fault.kind][2];
    if (!what) return;
    if (fault.kind === "attestation")
      this.#distrusted.set(credentialKey(candidate), this.#now() + DISTRUST_MS);
    const until = this.#now() + Math.min(fault.retryAfterMs ?? REST_MS[what], MOST_MS);
    const key = what === "credential" ? credentialKey(candidate) : modelKey(candidate);
    if (until > (this.#until.get(key)?.until ?? 0)) {
      this.#until.set(key, { until, why: fault.kind });
      const { provider, credential } = candidate;
      const model = what === "credential" ? null : candidate.model;
      this.#ailing.set(key, { provider, credential, model });
      this.#tell.rests({ provider, credential, model, kind: fault.kind, until });
    }
    if (this.#until.size > MOST) this.#sweep();
  }

  /** It has answered, so its rest is over. */
  answered(candidate: Candidate): void {
    if (this.#until.size > 0) this.#until.delete(modelKey(candidate));
    if (this.#ailing.size > 0) this.#recovered(candidate);
  }

  #recovered(candidate: Candidate): void {
    for (const key of [modelKey(candidate), credentialKey(candidate)]) {
      const ailing = this.#ailing.get(key);
      // A credential that rests may still answer where nothing else is left.
      if (!ailing || this.#rest(key)) continue;
      this.#ailing.delete(key);
      this.#tell.recovered(ailing);
    }
  }

  /** It gets nothing private, not even as the last resort. */
  distrusted(candidate: Candidate): boolean {
    return (
      this.#distrusted.size > 0 &&
      (this.#distrusted.get(credentialKey(candidate)) ?? 0) > this.#now()
    );
  }

  /** What it rests for; of two rests, the longer one. */
  resting(candidate: Candidate): CandidateRest | undefined {
    if (this.#until.size === 0) return undefined;
    const one = this.#rest(modelKey(candidate));
    const other = this.#rest(credentialKey(candidate));
    return one && other && other.until > one.until ? other : (one ?? other);
  }

  all(): RestingReading[] {
    this.#sweep();
    return [...this.#until].map(([key, { until }]) => {
      const [provider, credential, model] = key.split("\n") as [string, string, string?];
      return { provider, credential, model, until };
    });
  }

  /** For `status`. */
  list(): { what: string; until: number }[] {
    this.#sweep();
    return [...this.#until].map(([key, { until }]) => ({
      what: key.replaceAll("\n", " "),
      until,
    }));
  }

  #rest(key: string): CandidateRest | undefined {
    const rest = this.#until.get(key);
    if (rest === undefined || rest.until > this.#now()) return rest;
    this.#until.delete(key);
    return undefined;
  }

  #sweep(): void {
    const now = this.#now();
    for (const [key, { until }] of this.#until) if (until <= now) this.#until.delete(key);
  }
}

const credentialKey = (candidate: Candidate): string =>
  `${candidate.provider}\n${candidate.credential}`;
const modelKey = (candidate: Candidate): string =>
  `${credentialKey(candidate)}\n${candidate.model}`;
