// A row of the ledger as a row of the table, and back. Amounts are 64-bit integers there, never floats.
import { createHash } from "node:crypto";
import type { SQLInputValue } from "node:sqlite";
import type { Part } from "tollgate/plugin";
import { nth, type Row } from "../book/row.ts";

export const COLUMNS = [
  "seq",
  "kind",
  "attempt",
  "nth",
  "request",
  "n",
  "at",
  "instance",
  "key",
  "provider",
  "model",
  "protocol",
  "credential",
  "privacy",
  "labels",
  "price",
  "asked",
  "taken",
  "hold",
  "usage",
  "cost",
  "state",
  "outcome",
  "upstream_id",
  "upstream_cost",
  "parts",
  "finish",
  "ms",
  "reason",
  "actor",
] as const;

/** As a statement that reads big integers returns it. */
export type Stored = { [C in (typeof COLUMNS)[number]]: null | bigint | string };

export const toValues = (row: Row, seq: number): SQLInputValue[] => [
  seq,
  row.kind,
  row.attempt,
  nth(row),
  row.request,
  row.n,
  Math.floor(row.at),
  row.instance,
  row.key,
  row.target.provider,
  row.target.model,
  row.target.protocol,
  row.target.credential,
  row.privacy,
  JSON.stringify(row.labels),
  row.price,
  maybe(row.asked),
  JSON.stringify(row.taken.map(([id, take]) => [id, String(take)])),
  row.holdNano,
  JSON.stringify(row.usage),
  row.costNano,
  row.state,
  row.outcome,
  row.upstreamId ?? null,
  row.upstreamCostNano ?? null,
  maybe(row.parts),
  row.finish ?? null,
  maybe(row.ms),
  row.reason ?? null,
  row.actor ?? null,
];

export const fromStored = (s: Stored): Row => ({
  kind: s.kind as Row["kind"],
  attempt: s.attempt as string,
  request: s.request as string,
  n: Number(s.n),
  at: Number(s.at),
  instance: s.instance as string,
  key: s.key as string,
  target: {
    provider: s.provider as string,
    model: s.model as string,
    protocol: s.protocol as string | null,
    credential: s.credential as string,
  },
  privacy: s.privacy as Row["privacy"],
  labels: parse(s.labels)!,
  price: s.price as string | null,
  asked: parse(s.asked),
  taken: parse<[string, string][]>(s.taken)!.map(([id, take]) => [id, BigInt(take)] as const),
  holdNano: s.hold as bigint | null,
  usage: parse(s.usage)!,
  costNano: s.cost as bigint | null,
  state: s.state as Row["state"],
  outcome: s.outcome as string,
  upstreamId: (s.upstream_id as string | null) ?? undefined,
  upstreamCostNano: (s.upstream_cost as bigint | null) ?? undefined,
  parts: parse<(Omit<Part, "costNano"> & { costNano: string | null })[]>(s.parts)?.map((part) => ({
    ...part,
    costNano: part.costNano === null ? null : BigInt(part.costNano),
  })),
  finish: (s.finish as string | null) ?? undefined,
  ms: parse(s.ms),
  reason: (s.reason as string | null) ?? undefined,
  actor: (s.actor as string | null) ?? undefined,
});

const maybe = (value: unknown): string | null =>
  value === undefined
    ? null
    : JSON.stringify(value, (_key, v: unknown) => (typeof v === "bigint" ? String(v) : v));

export const parse = <T>(text: null | bigint | string): T | undefined =>
  text === null ? undefined : (JSON.parse(text as string) as T);

/** One link of the chain: the link before it, and every value of every row of one commit, in order. */
export function link(before: string, rows: readonly (readonly unknown[])[]): string {
  const hash = createHash("sha256").update(before);
  for (const values of rows)
    hash.update(JSON.stringify(values.map((value) => (value === null ? null : String(value)))));
  return hash.digest("hex");
}
