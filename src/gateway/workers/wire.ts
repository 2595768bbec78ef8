// A batch between two processes. The two commands that every call has go as rows of one JSON text: a third less work than
// cloning objects, on both sides. Amounts are integers beyond what JSON's numbers hold, so they stand there as text.
// All other commands, and those that say something rare, are cloned.
import type { RequestFacts, StoreCommand, Reserve, Settle, Verdict } from "../../plugin/store.ts";

export interface PackedBatch {
  /** Rows, and a number where the next of the others stands. */
  readonly text: string;
  readonly others: readonly StoreCommand[];
}

type At<C> = C & { at: number };
/** Every field is named: one that is new in a command does not compile before it has its place in a row. */
type Whole<C> = { [K in keyof C]-?: C[K] | undefined };

const said = (value: bigint | null | undefined): string | null =>
  value == null ? null : String(value);
const meant = (text: string | null): bigint | null => (text === null ? null : BigInt(text));

const reserveRow = (c: At<Reserve>) =>
  [
    "r",
    c.at,
    c.attempt,
    c.request,
    c.n,
    c.key,
    c.target.provider,
    c.target.model,
    c.target.protocol,
    c.target.credential,
    c.privacy,
    c.labels,
    c.claims.map(claimRow),
    said(c.holdNano),
    c.price,
    c.asked && askedRow(c.asked),
    c.account,
  ] as const;

function reserveOf(r: ReturnType<typeof reserveRow>): Whole<At<Reserve>> {
  return {
    do: "reserve",
    at: r[1],
    attempt: r[2],
    request: r[3],
    n: r[4],
    key: r[5],
    target: { provider: r[6], model: r[7], protocol: r[8], credential: r[9] },
    privacy: r[10],
    labels: r[11],
    claims: r[12].map(claimOf),
    holdNano: meant(r[13]),
    price: r[14],
    account: r[16] ?? undefined,
    asked: r[15] ? (askedOf(r[15]) as RequestFacts) : undefined,
  };
}

type Claim = Reserve["claims"][number];
const claimRow = ({ scope, unit, max, per, take }: Claim) =>
  [scope, unit, typeof max === "bigint" ? String(max) : max, per, String(take)] as const;
const claimOf = ([scope, unit, max, per, take]: ReturnType<typeof claimRow>): Claim => ({
  scope,
  unit,
  max: typeof max === "string" ? BigInt(max) : max,
  per,
  take: BigInt(take),
});

const askedRow = ({ model, frontend, protocol, lane, stream, basis }: RequestFacts) =>
  [model, frontend, protocol, lane, stream, basis] as const;
const askedOf = ([model, frontend, protocol, lane, stream, basis]: ReturnType<
  typeof askedRow
>): Whole<RequestFacts> => ({ model, frontend, protocol, lane, stream, basis: basis ?? undefined });

type Ms = NonNullable<Settle["ms"]>;
const settleRow = (c: At<Settle>) =>
  [
    "s",
    c.at,
    c.attempt,
    c.state,
    c.usage,
    said(c.costNano),
    c.outcome,
    c.upstreamId,
    said(c.upstreamCostNano),
    c.finish,
    c.ms && ([c.ms.head, c.ms.content, c.ms.total] as const),
  ] as const;

function settleOf(r: ReturnType<typeof settleRow>): Whole<Omit<At<Settle>, "parts">> {
  const ms: Whole<Ms> | undefined = r[10] && {
    head: r[10][0] ?? undefined,
    content: r[10][1] ?? undefined,
    total: r[10][2],
  };
  return {
    do: "settle",
    at: r[1],
    attempt: r[2],
    state: r[3],
    usage: r[4],
    costNano: meant(r[5]),
    outcome: r[6],
    upstreamId: r[7] ?? undefined,
    upstreamCostNano: meant(r[8]) ?? undefined,
    finish: r[9] ?? undefined,
    ms: (ms ?? undefined) as Settle["ms"],
  };
}

type Row = ReturnType<typeof reserveRow> | ReturnType<typeof settleRow> | 0;

export function pack(batch: readonly StoreCommand[]): PackedBatch {
  const others: StoreCommand[] = [];
  const rows = batch.map((command): Row => {
    if (command.do === "reserve") return reserveRow(command);
    if (command.do === "settle" && command.parts === undefined) return settleRow(command);
    others.push(command);
    return 0;
  });
  return { text: JSON.stringify(rows), others };
}

export function unpack({ text, others }: PackedBatch): StoreCommand[] {
  let next = 0;
  return (JSON.parse(text) as Row[]).map((row) => {
    if (row === 0) return others[next++]!;
    return (row[0] === "r" ? reserveOf(row) : settleOf(row)) as StoreCommand;
  });
}

/** Mostly there is nothing to tell: then it is how many. */
export type WireReply = number | readonly Verdict[];

export const told = (verdicts: readonly Verdict[]): WireReply =>
  verdicts.every((verdict) => verdict.ok && !verdict.limits && !verdict.crossed)
    ? verdicts.length
    : verdicts;

const FINE: Verdict = { ok: true };

export const heard = (verdicts: WireReply): readonly Verdict[] =>
  typeof verdicts === "number" ? Array.from({ length: verdicts }, () => FINE) : verdicts;
