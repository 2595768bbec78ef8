// Messages in, messages out, all structured-cloneable: a thread, another process or a test may stand between.
import type { Privacy } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import type { HeadersOut, Opt } from "../model/values.ts";
import type { CallState } from "./call.ts";
import type { Identity } from "./exchange.ts";
import type { Plugin, Problem, Setup } from "./plugin.ts";
import type { None, ObjectSchema } from "./schema.ts";

export interface StoreDef<O extends ObjectSchema = None> extends Plugin<O> {
  setup: Setup<O, Store>;
}

export interface Store {
  /** process: one owner, the host carries other workers' batches to it. fleet: every gateway opens it. */
  reach: "process" | "fleet";
  /** Lock, recover, presume what dead owners left open. */
  open(owner: { instance: string; leaseMs: number }): Promise<{ epoch: number; presumed: number }>;
  /** One transaction, in order, durable when it resolves. A denial is a verdict, a rejection means nothing happened; repeats change nothing. */
  apply(batch: readonly Command[]): Promise<readonly Verdict[]>;
  key(digest: string): Promise<KeyRecord | undefined>;
  keys(page?: Page): Promise<Listed<KeyRecord>>;
  entries(query: LedgerQuery, page?: Page): Promise<Listed<Entry>>;
  totals(
    query: LedgerQuery & { by: readonly ("key" | "provider" | "model" | "day" | "label")[] },
  ): Promise<readonly Total[]>;
  verify?(): Promise<readonly Problem[]>;
}

export type Command = { at: number } & (
  | Reserve
  | { do: "progress"; attempt: string; usage: Usage }
  | Settle
  | { do: "adjust"; attempt: string; costNano: bigint; reason: string; actor: string }
  | { do: "key"; key: KeyRecord }
  | { do: "alive" }
);

export interface Reserve {
  do: "reserve";
  attempt: string;
  request: string;
  n: number;
  key: string;
  target: Target;
  privacy: Privacy;
  labels: HeadersOut;
  claims: readonly (Limit & { take: bigint })[];
  holdNano: bigint | null;
  /** The pinned row's hash; null = unpriced. */
  price: string | null;
}

export interface Settle {
  do: "settle";
  attempt: string;
  state: CallState;
  usage: Usage;
  costNano: bigint | null;
  outcome: string;
  upstreamId?: string;
  upstreamCostNano?: bigint;
  parts?: readonly Part[];
}

export type Verdict =
  | { ok: true; limits?: readonly LimitState[] }
  | { ok: false; denied: LimitState; retryAfterMs: number };

/** When billed at another model's or tier's price, or at several. */
export interface Part {
  model: string;
  tier?: Opt<string>;
  usage: Usage;
  price: string | null;
  costNano: bigint | null;
}

export interface Target {
  provider: string;
  model: string;
  protocol: string | null;
  credential: string;
}

export interface Limit {
  scope: string;
  unit: "requests" | "concurrent" | "tokens" | "input" | "output" | "images" | "nano_usd";
  max: number | bigint;
  per: "minute" | "hour" | "day" | "week" | "month" | "total" | "open";
}
export interface LimitState extends Limit {
  left: number | bigint;
  /** Unix milliseconds. */
  resetsAt: number;
}

export interface KeyRecord extends Identity {
  digest: string;
  created: number;
  expires?: Opt<number>;
  revoked?: Opt<number>;
}

export interface Entry {
  seq: number;
  kind: "reserve" | "settle" | "adjust";
  attempt: string;
  request: string;
  at: number;
  key: string;
  target: Target;
  usage: Usage;
  costNano: bigint | null;
  state: CallState | "open";
  outcome: string;
  upstreamId?: string;
  labels: HeadersOut;
}

export interface LedgerQuery {
  key?: Opt<string>;
  attempt?: Opt<string>;
  upstreamId?: Opt<string>;
  from?: Opt<number>;
  to?: Opt<number>;
  state?: Opt<Entry["state"]>;
}
export interface Page {
  after?: Opt<string>;
  limit?: Opt<number>;
}
export interface Listed<T> {
  items: readonly T[];
  next?: Opt<string>;
}
export interface Total {
  by: HeadersOut;
  calls: number;
  usage: Usage;
  costNano: bigint;
  unpriced: number;
}
