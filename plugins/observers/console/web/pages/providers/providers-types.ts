// The parts of the results of providers.list and providers.test that the pages use.
import type { Tone } from "../../parts/basics.ts";

export interface Cooldown {
  readonly state: string;
  readonly reason: string;
  readonly until: number;
  readonly rejectsRequests?: boolean;
  readonly model?: string;
}

export interface Credential {
  readonly name: string;
  readonly weight: number;
  readonly cooldowns: readonly Cooldown[];
  readonly modelList?: {
    readonly modelCount?: number;
    readonly lastSuccessAt?: number;
    readonly failures: number;
    readonly lastError?: { readonly at: number; readonly message: string };
    readonly nextRefreshAt?: number;
  };
}

export interface Provider {
  readonly name: string;
  readonly protocols: readonly string[];
  readonly modelCount: number;
  readonly credentials: readonly Credential[];
  readonly lastHour?: {
    readonly requests: number;
    readonly failed: number;
    readonly canceled: number;
    readonly ms?: Percentiles;
    readonly firstTokenMs?: Percentiles;
  };
  readonly recentFaults: readonly {
    readonly at: number;
    readonly request: string;
    readonly kind: string;
    readonly code?: string;
    readonly model: string;
    readonly credential: string;
  }[];
  /** Newest first. */
  readonly outages: readonly CooldownPeriod[];
  readonly pools: readonly {
    readonly origin: string;
    readonly connected: number;
    readonly running: number;
    readonly queued: number;
  }[];
}

/** A cooldown. Times are in Unix milliseconds. */
export interface CooldownPeriod {
  readonly credential: string;
  readonly model: string | null;
  readonly errorKind: string;
  readonly startedAt: number;
  readonly cooldownEndsAt: number;
  /** Time of the first response after the cooldown. Unset if there was no response yet. */
  readonly recoveredAt?: number;
}

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface ProvidersResponse {
  readonly providers: readonly Provider[];
  readonly unmountedProviders: readonly { readonly provider: string; readonly reason: string }[];
  readonly countedSince: number;
}

export interface TestsResponse {
  readonly tests: readonly {
    readonly credential: string;
    readonly ok: boolean;
    readonly model: string | null;
    readonly request?: string;
    readonly status?: number;
    readonly ms?: number;
    readonly firstTokenMs?: number;
    readonly usd?: string | null;
    readonly reason?: string;
  }[];
}

const COOLDOWN_STATES = new Set(["credential_rejected", "retry_after", "open"]);

export function providerState({ credentials, lastHour }: Provider): { label: string; tone: Tone } {
  const rests = credentials.map(({ cooldowns }) =>
    cooldowns.filter(({ state }) => COOLDOWN_STATES.has(state)),
  );
  const whole = rests.filter((each) => each.some(({ model }) => model === undefined)).length;
  if (credentials.length > 0 && whole === credentials.length)
    return { label: "In cooldown", tone: "bad" };
  if (rests.some((each) => each.length > 0)) return { label: "Partly in cooldown", tone: "warn" };
  if (credentials.some(({ cooldowns }) => cooldowns.length > 0))
    return { label: "Recovering", tone: "warn" };
  if (!lastHour) return { label: "No calls", tone: "" };
  return lastHour.failed * 2 > lastHour.requests
    ? { label: "Failing", tone: "bad" }
    : { label: "Healthy", tone: "good" };
}
