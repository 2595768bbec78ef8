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
  ThresholdReached,
  LimitState,
  Reserve,
  Settle,
  CommandResult,
} from "tollgate/plugin";
import {
  type ReserveInput,
  type SettleInput,
  checkCommand,
  fromJson,
  type OtherCommand,
  toJson,
} from "tollgate/store";
import type { HashedTerms } from "./hashed-terms.ts";
import { createTermsNumbering, type TermsTuple } from "./call-terms.ts";

type Timed<C> = C & { readonly at: number };

/** What a row says beside its terms, as the file holds it: a list's items. */
export const encodeAmount = (value: bigint | null | undefined): string | null =>
  value == null ? null : String(value);

/** After kind, time, attempt, request, n, terms and hold. */
export const encodeSettleFields = (c: Settle): string =>
  JSON.stringify([
    c.state,
    encodeAmount(c.costNano),
    c.outcome,
    c.usage,
    c.upstreamId,
    encodeAmount(c.upstreamCostNano),
    c.finish,
    c.ms,
    c.parts?.map((part) => ({ ...part, costNano: encodeAmount(part.costNano) })),
  ]).slice(1, -1);

export interface BatchEncoder {
  /** Throws what a command that cannot be obeyed has to be told. */
  encode(batch: readonly StoreCommand[]): string;
}

/** Of one thread: it has heard what this one said before. */
export function createBatchEncoder(): BatchEncoder {
  const numbering = createTermsNumbering();
  const reserve = (c: Timed<Reserve>): string =>
    `r\t${Math.floor(c.at)}\t${numbering.numberOf(c)}\t${c.holdNano === null ? "null" : `"${c.holdNano}"`}\t${
      c.claims.length === 0 ? "" : JSON.stringify(c.claims.map(encodeClaim))
    }\t${JSON.stringify(c.attempt)}\t${JSON.stringify(c.request)},${c.number}`;
  const line = (c: StoreCommand): string =>
    c.do === "reserve" ? reserve(c) : c.do === "settle" ? encodeSettle(c) : `x\t${toJson(c)}`;

  return {
    encode(batch) {
      for (const command of batch) checkCommand(command);
      let text = "";
      for (const command of batch) text += `${line(command)}\n`;
      const { forget, texts } = numbering.takeNewTexts();
      for (let i = texts.length; i-- > 0;) text = `t\t${texts[i]}\n${text}`;
      return forget ? `f\n${text}` : text;
    },
  };
}

const encodeSettle = (c: Timed<Settle>): string =>
  `s\t${Math.floor(c.at)}\t${JSON.stringify(c.attempt)}\t${encodeSettleFields(c)}`;

type LimitClaim = Limit & { take: bigint };
type ClaimTuple = readonly [string, Limit["unit"], number | string, Limit["per"], string];

const encodeClaim = ({ scope, unit, max, per, take }: LimitClaim): ClaimTuple => [
  scope,
  unit,
  typeof max === "bigint" ? String(max) : max,
  per,
  String(take),
];
const decodeClaim = ([scope, unit, max, per, take]: ClaimTuple): LimitClaim => ({
  scope,
  unit,
  max: typeof max === "string" ? BigInt(max) : max,
  per,
  take: BigInt(take),
});

/** One text of terms, shared by all calls that have them. */
export interface EncodedTerms {
  readonly text: string;
  readonly key: string;
  /** As the file was told of it last. */
  hashed: HashedTerms | undefined;
}
export const createEncodedTerms = (text: string): EncodedTerms => ({
  text,
  key: (JSON.parse(text) as TermsTuple)[0],
  hashed: undefined,
});

export interface EncodedReserve extends ReserveInput {
  readonly terms: EncodedTerms;
  /** As JSON: attempt, request, n. */
  readonly identity: string;
  /** As JSON. */
  readonly hold: string;
}

type SettleFields = readonly [
  unknown,
  unknown,
  outcome: string,
  usage: Settle["usage"],
  ...unknown[],
];

/** What it says is read when the rules ask, and they do when something was taken. State and cost are first in it. */
export class EncodedSettle implements SettleInput {
  readonly do = "settle";
  readonly at: number;
  readonly attempt: string;
  readonly text: string;
  #fields: SettleFields | undefined;
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
    return this.#parsedFields[2];
  }
  get usage() {
    return this.#parsedFields[3];
  }
  get #parsedFields() {
    return (this.#fields ??= JSON.parse(`[${this.text}]`) as SettleFields);
  }
}

export type EncodedCommand = EncodedReserve | EncodedSettle | OtherCommand;

export const toEncodedSettle = (c: Timed<Settle>): EncodedSettle =>
  new EncodedSettle(Math.floor(c.at), c.attempt, encodeSettleFields(c));

/** Of one thread, too: what has a number. */
export function createBatchDecoder(): (text: string) => EncodedCommand[] {
  let terms: EncodedTerms[] = [];
  const NONE: readonly LimitClaim[] = [];

  function reserve(f: readonly string[]): EncodedReserve {
    // Put together anew, and cut from that: an open call keeps its own few bytes, not its batch.
    const own = `${f[3]},${f[5]},${f[6]}`;
    const from = f[3]!.length + 1;
    return {
      do: "reserve",
      at: Number(f[1]),
      terms: terms[Number(f[2])]!,
      hold: own.slice(0, from - 1),
      claims: f[4] === "" ? NONE : (JSON.parse(f[4]!) as ClaimTuple[]).map(decodeClaim),
      identity: own.slice(from),
      attempt: parseQuoted(own.slice(from, from + f[5]!.length)),
    };
  }

  return (text) => {
    const commands: EncodedCommand[] = [];
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const f = line.split("\t");
      switch (f[0]) {
        case "r":
          commands.push(reserve(f));
          break;
        case "s":
          commands.push(new EncodedSettle(Number(f[1]), parseQuoted(f[2]!), f[3]!));
          break;
        case "t":
          // A copy, for the same reason: they stay for long.
          terms.push(createEncodedTerms(Buffer.from(f[1]!).toString()));
          break;
        case "f":
          terms = [];
          break;
        default:
          commands.push(fromJson<OtherCommand>(f[1]!));
      }
    }
    return commands;
  };
}

const parseQuoted = (text: string): string =>
  text.includes("\\") ? (JSON.parse(text) as string) : text.slice(1, -1);

/** Mostly nothing is to be told: then it is how many. Else, for each, what its claims left. */
export type EncodedResults = number | string;

/** Which claim of the command, what is left of it, and when it is back; after them, for a denial, when to come again. */
type RemainingTuple = readonly [claim: number, left: string, resetsAt: number];
type EncodedResult =
  | 0
  | readonly RemainingTuple[]
  | { denied: RemainingTuple; retryAfterMs: number }
  | { crossed: ThresholdText[] };
/** Amounts as text. */
type ThresholdText = Omit<ThresholdReached, "used" | "max"> & { used: string; max: string };

export function encodeResults(
  batch: readonly EncodedCommand[],
  verdicts: readonly CommandResult[],
): EncodedResults {
  if (verdicts.every((v) => v.ok && v.limits === undefined && v.thresholds === undefined))
    return verdicts.length;
  return JSON.stringify(
    verdicts.map((verdict, i): EncodedResult => {
      const claims = (batch[i] as EncodedReserve).claims;
      const left = (limit: LimitState): RemainingTuple => [
        claims.findIndex((c) => isClaimOf(c, limit)),
        String(limit.remaining),
        limit.resetsAt,
      ];
      if (verdict.ok && verdict.thresholds)
        return {
          crossed: verdict.thresholds.map(({ used, max, ...rest }) => ({
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

const isClaimOf = (claim: Limit, limit: Limit): boolean =>
  claim.scope === limit.scope &&
  claim.unit === limit.unit &&
  claim.per === limit.per &&
  claim.max === limit.max;

const ALLOWED: CommandResult = { ok: true };

export function decodeResults(
  batch: readonly StoreCommand[],
  verdicts: EncodedResults,
): readonly CommandResult[] {
  if (typeof verdicts === "number") return Array.from({ length: verdicts }, () => ALLOWED);
  return (JSON.parse(verdicts) as EncodedResult[]).map((one, i): CommandResult => {
    if (one === 0) return ALLOWED;
    const limit = ([claim, left, resetsAt]: RemainingTuple): LimitState => {
      const { scope, unit, max, per } = (batch[i] as Reserve).claims[claim]!;
      return {
        scope,
        unit,
        max,
        per,
        remaining: typeof max === "bigint" ? BigInt(left) : Number(left),
        resetsAt,
      };
    };
    if ("crossed" in one)
      return {
        ok: true,
        thresholds: one.crossed.map(({ used, max, ...rest }) => ({
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
