// What providers.list and providers.test answer, as far as pages read it.
import type { Tone } from "../parts/plain.ts";

export interface Rest {
  readonly state: string;
  readonly why: string;
  readonly until: number;
  readonly refuses?: boolean;
  readonly model?: string;
}

export interface Credential {
  readonly name: string;
  readonly weight: number;
  readonly resting: readonly Rest[];
  readonly list?: {
    readonly count?: number;
    readonly lastOk?: number;
    readonly failures: number;
    readonly lastError?: { readonly at: number; readonly message: string };
    readonly nextAt?: number;
  };
}

export interface Provider {
  readonly name: string;
  readonly protocols: readonly string[];
  readonly models: number;
  readonly credentials: readonly Credential[];
  readonly hour?: {
    readonly requests: number;
    readonly ok: number;
    readonly failed: number;
    readonly canceled: number;
    readonly ms?: Times;
    readonly firstContentMs?: Times;
  };
  readonly faults: readonly {
    readonly at: number;
    readonly request: string;
    readonly kind: string;
    readonly code?: string;
    readonly model: string;
    readonly credential: string;
  }[];
  /** The newest first. */
  readonly outages: readonly Outage[];
  readonly pools: readonly {
    readonly origin: string;
    readonly connected: number;
    readonly running: number;
    readonly queued: number;
  }[];
}

/** A cooldown. Times are Unix milliseconds. */
export interface Outage {
  readonly credential: string;
  readonly model: string | null;
  readonly kind: string;
  readonly from: number;
  readonly until: number;
  /** The first response after it; absent: none yet. */
  readonly to?: number;
}

export interface Times {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface Health {
  readonly providers: readonly Provider[];
  readonly leftOut: readonly { readonly provider: string; readonly why: string }[];
  readonly since: number;
}

export interface Tests {
  readonly tests: readonly {
    readonly credential: string;
    readonly ok: boolean;
    readonly model: string | null;
    readonly request?: string;
    readonly status?: number;
    readonly ms?: number;
    readonly contentMs?: number;
    readonly usd?: string | null;
    readonly why?: string;
  }[];
}

const AWAY = new Set(["refused", "told", "open"]);

export function stateOf({ credentials, hour }: Provider): { said: string; tone: Tone } {
  const rests = credentials.map(({ resting }) => resting.filter(({ state }) => AWAY.has(state)));
  const whole = rests.filter((each) => each.some(({ model }) => model === undefined)).length;
  if (credentials.length > 0 && whole === credentials.length)
    return { said: "In cooldown", tone: "bad" };
  if (rests.some((each) => each.length > 0)) return { said: "Partly in cooldown", tone: "warn" };
  if (credentials.some(({ resting }) => resting.length > 0))
    return { said: "Recovering", tone: "warn" };
  if (!hour) return { said: "No calls", tone: "" };
  return hour.failed * 2 > hour.requests
    ? { said: "Failing", tone: "bad" }
    : { said: "Healthy", tone: "good" };
}
