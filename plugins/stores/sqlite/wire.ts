// A batch on its way between the threads: one text, a command a line. What the writer only stores crosses as the text that
// the file will hold, so that it is not read on the way; what the rules ask for stands apart from it.
//
//   t  terms       the next number's text; f: forget the numbers
//   r  a reserve   at, terms, hold, claims, attempt, the rest
//   s  a settle    at, attempt, the rest
//   x  another     all of it, as JSON
//
// Text in JSON holds neither tabs nor line ends. Amounts are integers beyond its numbers, and travel as decimal text.
import type {
  StoreCommand,
  Limit,
  LimitCrossing,
  LimitState,
  Reserve,
  Settle,
  Verdict,
} from "tollgate/plugin";
import {
  type BookReserve,
  type BookSettle,
  checkCommand,
  fromJson,
  type RareCommand,
  toJson,
} from "tollgate/store";
import type { Said } from "./said.ts";
import { createNumbering, type Listed } from "./terms.ts";

type At<C> = C & { readonly at: number };

/** What a row says beside its terms, as the file holds it: a list's items. */
export const amount = (value: bigint | null | undefined): string | null =>
  value == null ? null : String(value);

/** After kind, time, attempt, request, n, terms and hold. */
export const settledText = (c: Settle): string =>
  JSON.stringify([
    c.state,
    amount(c.costNano),
    c.outcome,
    c.usage,
    c.upstreamId,
    amount(c.upstreamCostNano),
    c.finish,
    c.ms,
    c.parts?.map((part) => ({ ...part, costNano: amount(part.costNano) })),
  ]).slice(1, -1);

export interface Packer {
  /** Throws what a command that cannot be obeyed has to be told. */
  pack(batch: readonly StoreCommand[]): string;
}

/** Of one thread: it has heard what this one said before. */
export function createPacker(): Packer {
  const numbering = createNumbering();
  const reserve = (c: At<Reserve>): string =>
    `r\t${Math.floor(c.at)}\t${numbering.number(c)}\t${c.holdNano === null ? "null" : `"${c.holdNano}"`}\t${
      c.claims.length === 0 ? "" : JSON.stringify(c.claims.map(claimed))
    }\t${JSON.stringify(c.attempt)}\t${JSON.stringify(c.request)},${c.n}`;
  const line = (c: StoreCommand): string =>
    c.do === "reserve" ? reserve(c) : c.do === "settle" ? settleLine(c) : `x\t${toJson(c)}`;

  return {
    pack(batch) {
      for (const command of batch) checkCommand(command);
      let text = "";
      for (const command of batch) text += `${line(command)}\n`;
      const { forget, texts } = numbering.news();
      for (let i = texts.length; i-- > 0;) text = `t\t${texts[i]}\n${text}`;
      return forget ? `f\n${text}` : text;
    },
  };
}

const settleLine = (c: At<Settle>): string =>
  `s\t${Math.floor(c.at)}\t${JSON.stringify(c.attempt)}\t${settledText(c)}`;

type Claim = Limit & { take: bigint };
type ClaimText = readonly [string, Limit["unit"], number | string, Limit["per"], string];

const claimed = ({ scope, unit, max, per, take }: Claim): ClaimText => [
  scope,
  unit,
  typeof max === "bigint" ? String(max) : max,
  per,
  String(take),
];
const claimOf = ([scope, unit, max, per, take]: ClaimText): Claim => ({
  scope,
  unit,
  max: typeof max === "string" ? BigInt(max) : max,
  per,
  take: BigInt(take),
});

/** One text of terms, shared by all calls that have them. */
export interface Terms {
  readonly text: string;
  readonly key: string;
  /** As the file was told of it last. */
  said: Said | undefined;
}
export const newTerms = (text: string): Terms => ({
  text,
  key: (JSON.parse(text) as Listed)[0],
  said: undefined,
});

export interface ReserveLine extends BookReserve {
  readonly terms: Terms;
  /** As JSON: attempt, request, n. */
  readonly who: string;
  /** As JSON. */
  readonly hold: string;
}

type SettleText = readonly [
  unknown,
  unknown,
  outcome: string,
  usage: Settle["usage"],
  ...unknown[],
];

/** What it says is read when the rules ask, and they do when something was taken. State and cost are first in it. */
export class SettleLine implements BookSettle {
  readonly do = "settle";
  readonly at: number;
  readonly attempt: string;
  readonly text: string;
  #said: SettleText | undefined;
  constructor(at: number, attempt: string, text: string) {
    this.at = at;
    this.attempt = attempt;
    this.text = text;
  }
  get state() {
    return this.text.slice(1, this.text.indexOf('"', 1)) as Settle["state"];
  }
  get costNano() {
    const from = this.text.indexOf(",") + 1;
    const cost = this.text.slice(from, this.text.indexOf(",", from));
    return cost === "null" ? null : BigInt(cost.slice(1, -1));
  }
  get outcome() {
    return this.#all[2];
  }
  get usage() {
    return this.#all[3];
  }
  get #all() {
    return (this.#said ??= JSON.parse(`[${this.text}]`) as SettleText);
  }
}

export type Line = ReserveLine | SettleLine | RareCommand;

export const settling = (c: At<Settle>): SettleLine =>
  new SettleLine(Math.floor(c.at), c.attempt, settledText(c));

/** Of one thread, too: what has a number. */
export function createUnpacker(): (text: string) => Line[] {
  let terms: Terms[] = [];
  const NONE: readonly Claim[] = [];

  function reserve(f: readonly string[]): ReserveLine {
    // Put together anew, and cut from that: an open call keeps its own few bytes, not its batch.
    const own = `${f[3]},${f[5]},${f[6]}`;
    const from = f[3]!.length + 1;
    return {
      do: "reserve",
      at: Number(f[1]),
      terms: terms[Number(f[2])]!,
      hold: own.slice(0, from - 1),
      claims: f[4] === "" ? NONE : (JSON.parse(f[4]!) as ClaimText[]).map(claimOf),
      who: own.slice(from),
      attempt: unquoted(own.slice(from, from + f[5]!.length)),
    };
  }

  return (text) => {
    const commands: Line[] = [];
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const f = line.split("\t");
      switch (f[0]) {
        case "r":
          commands.push(reserve(f));
          break;
        case "s":
          commands.push(new SettleLine(Number(f[1]), unquoted(f[2]!), f[3]!));
          break;
        case "t":
          // A copy, for the same reason: they stay for long.
          terms.push(newTerms(Buffer.from(f[1]!).toString()));
          break;
        case "f":
          terms = [];
          break;
        default:
          commands.push(fromJson<RareCommand>(f[1]!));
      }
    }
    return commands;
  };
}

const unquoted = (text: string): string =>
  text.includes("\\") ? (JSON.parse(text) as string) : text.slice(1, -1);

/** Mostly nothing is to be told: then it is how many. Else, for each, what its claims left. */
export type Verdicts = number | string;

/** Which claim of the command, what is left of it, and when it is back; after them, for a denial, when to come again. */
type Left = readonly [claim: number, left: string, resetsAt: number];
type Told =
  | 0
  | readonly Left[]
  | { denied: Left; retryAfterMs: number }
  | { crossed: CrossingText[] };
/** Amounts as text. */
type CrossingText = Omit<LimitCrossing, "used" | "max"> & { used: string; max: string };

export function told(batch: readonly Line[], verdicts: readonly Verdict[]): Verdicts {
  if (verdicts.every((v) => v.ok && v.limits === undefined && v.crossed === undefined))
    return verdicts.length;
  return JSON.stringify(
    verdicts.map((verdict, i): Told => {
      const claims = (batch[i] as ReserveLine).claims;
      const left = (limit: LimitState): Left => [
        claims.findIndex((c) => isOf(c, limit)),
        String(limit.left),
        limit.resetsAt,
      ];
      if (verdict.ok && verdict.crossed)
        return {
          crossed: verdict.crossed.map(({ used, max, ...rest }) => ({
            ...rest,
            used: String(used),
            max: String(max),
          })),
        };
      return verdict.ok
        ? (verdict.limits?.map(left) ?? 0)
        : { denied: left(verdict.denied), retryAfterMs: verdict.retryAfterMs };
    }),
  );
}

const isOf = (claim: Limit, limit: Limit): boolean =>
  claim.scope === limit.scope &&
  claim.unit === limit.unit &&
  claim.per === limit.per &&
  claim.max === limit.max;

const FINE: Verdict = { ok: true };

export function heard(batch: readonly StoreCommand[], verdicts: Verdicts): readonly Verdict[] {
  if (typeof verdicts === "number") return Array.from({ length: verdicts }, () => FINE);
  return (JSON.parse(verdicts) as Told[]).map((one, i): Verdict => {
    if (one === 0) return FINE;
    const limit = ([claim, left, resetsAt]: Left): LimitState => {
      const { scope, unit, max, per } = (batch[i] as Reserve).claims[claim]!;
      return {
        scope,
        unit,
        max,
        per,
        left: typeof max === "bigint" ? BigInt(left) : Number(left),
        resetsAt,
      };
    };
    if ("crossed" in one)
      return {
        ok: true,
        crossed: one.crossed.map(({ used, max, ...rest }) => ({
          ...rest,
          used: BigInt(used),
          max: BigInt(max),
        })),
      };
    return "denied" in one
      ? { ok: false, denied: limit(one.denied), retryAfterMs: one.retryAfterMs }
      : { ok: true, limits: one.map(limit) };
  });
}
