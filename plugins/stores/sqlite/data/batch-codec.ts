// Encodes a batch for the message between two threads: one text, with one command per line. Fields
// that the writer only stores are sent in the text form of the file, so the writer does not parse
// them. Fields that the ledger rules need are sent separately.
//
//   t  terms       the text for the next number; f: forget all numbers
//   l  a limit     the text for the next number; m: forget all numbers
//   r  a reserve   at, terms, hold, claims (number of the limit and amount), attempt, other fields, job
//   s  a settle    at, attempt, other fields
//   x  any other   the whole command as JSON
//
// JSON text contains no tabs and no line ends. Amounts exceed the range of JSON numbers, so they are
// sent as decimal text.
import type {
  StoreCommand,
  Limit,
  ThresholdReached,
  LimitState,
  Reserve,
  Settle,
  CommandResult,
  JobReserve,
} from "tollgate/plugin";
import {
  type ReserveInput,
  type SettleInput,
  checkCommand,
  fromJson,
  type OtherCommand,
  toJson,
  type TermsTuple,
  encodeSettleFields,
  serializeTerms,
  type CallTerms,
} from "tollgate/store";
import type { HashedTerms } from "./hashed-terms.ts";

type Timed<C> = C & { readonly at: number };

export interface BatchEncoder {
  /**
   * @throws If a command is invalid.
   */
  encode(batch: readonly StoreCommand[]): string;
}

/**
 * Creates the encoder of one thread. The encoder records which terms it has already sent to the
 * other thread.
 */
export function createBatchEncoder(): BatchEncoder {
  const numbering = createTermsNumbering();
  const limits = createLimitNumbering();
  const reserve = (c: Timed<Reserve>): string =>
    `r\t${Math.floor(c.at)}\t${numbering.numberOf(termsOf(c))}\t${c.holdNano === null ? "null" : `"${c.holdNano}"`}\t${
      c.claims.length === 0 ? "" : limits.encodeClaims(c.claims)
    }\t${JSON.stringify(c.attempt)}\t${JSON.stringify(c.request)},${c.number}${c.job ? `\t${encodeJob(c.job)}` : ""}`;
  const line = (c: StoreCommand): string =>
    c.do === "reserve" ? reserve(c) : c.do === "settle" ? encodeSettle(c) : `x\t${toJson(c)}`;

  return {
    encode(batch) {
      for (const command of batch) checkCommand(command);
      let text = "";
      for (const command of batch) text += `${line(command)}\n`;
      const { forget, texts } = numbering.takeNewTexts();
      for (let i = texts.length; i-- > 0;) text = `t\t${texts[i]}\n${text}`;
      text = limits.takeNewLines() + text;
      return forget ? `f\n${text}` : text;
    },
  };
}

const encodeSettle = (c: Timed<Settle>): string =>
  `s\t${Math.floor(c.at)}\t${JSON.stringify(c.attempt)}\t${encodeSettleFields(c)}`;

/** Returns the terms of a reserve. */
const termsOf = (c: Reserve): CallTerms =>
  c.job === undefined
    ? (c as Reserve & { readonly job?: undefined })
    : { ...c, job: c.job.attempt };

const encodeJob = (job: JobReserve): string => toJson(job);
const decodeJob = (text: string): JobReserve => fromJson<JobReserve>(text);

type LimitClaim = Limit & { take: bigint };
/** A limit. The last two elements are set for members of groups only. */
type LimitTuple = readonly [
  scope: string,
  unit: Limit["unit"],
  max: number | string,
  per: Limit["per"],
  maxMembers: number | null,
  countsOnly: 0 | 1,
];

const encodeLimit = ({ scope, unit, max, per, maxMembers, countsOnly }: Limit): string => {
  const amount = typeof max === "bigint" ? String(max) : max;
  const tuple: LimitTuple = [scope, unit, amount, per, maxMembers ?? null, countsOnly ? 1 : 0];
  return JSON.stringify(tuple);
};

function decodeLimit(text: string): Limit {
  const [scope, unit, max, per, maxMembers, countsOnly] = JSON.parse(text) as LimitTuple;
  return {
    scope,
    unit,
    max: typeof max === "string" ? BigInt(max) : max,
    per,
    maxMembers: maxMembers ?? undefined,
    countsOnly: countsOnly === 1 ? true : undefined,
  };
}

/** Decodes the claims of a reserve, each in the form `<number>:<amount>,`. */
function decodeClaims(text: string, limits: readonly Limit[]): LimitClaim[] {
  const claims: LimitClaim[] = [];
  for (let from = 0; from < text.length;) {
    const colon = text.indexOf(":", from);
    const end = text.indexOf(",", colon);
    const { scope, unit, max, per, maxMembers, countsOnly } =
      limits[readDigits(text, from, colon)]!;
    const take =
      end - colon - 1 > MAX_EXACT_DIGITS
        ? BigInt(text.slice(colon + 1, end))
        : BigInt(readDigits(text, colon + 1, end));
    claims.push({ scope, unit, max, per, maxMembers, countsOnly, take });
    from = end + 1;
  }
  return claims;
}

/** Number of digits that a JavaScript number always represents exactly. */
const MAX_EXACT_DIGITS = 15;

/** Reads a whole number without creating a string for it. */
function readDigits(text: string, from: number, end: number): number {
  let value = 0;
  for (let i = from; i < end; i++) value = value * 10 + (text.charCodeAt(i) - 48);
  return value;
}

/** The text of terms, shared by all calls that have the same terms. */
export interface EncodedTerms {
  readonly text: string;
  readonly key: string;
  /** The hashed form that was written to the file last. */
  hashed: HashedTerms | undefined;
}
export const createEncodedTerms = (text: string): EncodedTerms => ({
  text,
  key: (JSON.parse(text) as TermsTuple)[0],
  hashed: undefined,
});

export interface EncodedReserve extends ReserveInput {
  readonly terms: EncodedTerms;
  /** Attempt, request, and n, as JSON. */
  readonly identity: string;
  /** The reserved amount, as JSON. */
  readonly hold: string;
}

type SettleFields = readonly [
  unknown,
  unknown,
  outcome: string,
  usage: Settle["usage"],
  ...unknown[],
];

/**
 * A settle whose text is parsed only when the rules need it, which is when the call charged a
 * limit. State and cost are the first two fields of the text.
 */
export class EncodedSettle implements SettleInput {
  readonly do = "settle";
  readonly at: number;
  readonly attempt: string;
  readonly text: string;
  #fields: SettleFields | undefined;
  #state: Settle["state"] | undefined;
  #costNano: bigint | null | undefined;
  constructor(at: number, attempt: string, text: string) {
    this.at = at;
    this.attempt = attempt;
    this.text = text;
  }
  get state() {
    return (this.#state ??= this.text.slice(1, this.text.indexOf('"', 1)) as Settle["state"]);
  }
  get costNano() {
    return this.#costNano === undefined ? (this.#costNano = this.#parseCost()) : this.#costNano;
  }
  #parseCost(): bigint | null {
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

/** Creates the decoder of one thread. The decoder keeps the terms of each number. */
export function createBatchDecoder(): (text: string) => EncodedCommand[] {
  let terms: EncodedTerms[] = [];
  let limits: Limit[] = [];
  const NONE: readonly LimitClaim[] = [];

  function reserve(f: readonly string[]): EncodedReserve {
    // Concatenates the fields into a new string, and slices that string. An open call then keeps
    // only its own few bytes in memory, not the whole batch.
    const own = `${f[3]},${f[5]},${f[6]}`;
    const from = f[3]!.length + 1;
    return {
      do: "reserve",
      at: Number(f[1]),
      terms: terms[Number(f[2])]!,
      hold: own.slice(0, from - 1),
      claims: f[4] === "" ? NONE : decodeClaims(f[4]!, limits),
      identity: own.slice(from),
      attempt: parseQuoted(own.slice(from, from + f[5]!.length)),
      ...(f[7] !== undefined && { job: decodeJob(f[7]) }),
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
          // A copy, so that the terms do not keep the batch in memory.
          terms.push(createEncodedTerms(Buffer.from(f[1]!).toString()));
          break;
        case "f":
          terms = [];
          break;
        case "l":
          limits.push(decodeLimit(f[1]!));
          break;
        case "m":
          limits = [];
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

/**
 * The results of a batch. If all commands succeeded without details, it is the number of commands.
 * If the only details are remaining limits, one for each claim, it is a list with two numbers per
 * claim: the remaining amount, and when the limit resets. Otherwise, it is JSON with the remaining
 * limits of each command.
 */
export type EncodedResults = number | Float64Array | string;

/**
 * The index of the claim in the command, the remaining amount, and when the limit resets. A denial
 * has the retry delay next to this tuple.
 */
type RemainingTuple = readonly [claim: number, left: string, resetsAt: number];
type EncodedResult =
  | 0
  | readonly RemainingTuple[]
  | { denied: RemainingTuple; retryAfterMs: number; isFull?: true | undefined }
  | { crossed: ThresholdText[] };
/** A reached threshold with its amounts as text. */
type ThresholdText = Omit<ThresholdReached, "used" | "max"> & { used: string; max: string };

export function encodeResults(
  batch: readonly EncodedCommand[],
  verdicts: readonly CommandResult[],
): EncodedResults {
  let numbers = 0;
  for (let i = 0; i < batch.length && numbers >= 0; i++)
    numbers = isListable(batch[i]!, verdicts[i]!)
      ? numbers + 2 * (claimsOf(batch[i]!)?.length ?? 0)
      : -1;
  if (numbers === 0) return verdicts.length;
  if (numbers > 0) return listRemaining(verdicts, numbers);
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
        : {
            denied: left(verdict.denied),
            retryAfterMs: verdict.retryAfterMs,
            isFull: verdict.isFull,
          };
    }),
  );
}

const claimsOf = (command: EncodedCommand): readonly LimitClaim[] | undefined =>
  command.do === "reserve" ? command.claims : undefined;

/** Whether the details of a result are the remaining limits of all claims in their order. */
function isListable(command: EncodedCommand, verdict: CommandResult): boolean {
  if (!verdict.ok || verdict.thresholds) return false;
  const claims = claimsOf(command) ?? NO_CLAIMS;
  const { limits = NO_LIMITS } = verdict;
  if (limits.length !== claims.length) return false;
  for (let i = 0; i < claims.length; i++) {
    const limit = limits[i]!;
    const { remaining } = limit;
    if (typeof remaining === "bigint" && remaining > MAX_EXACT_AMOUNT) return false;
    if (!isClaimOf(claims[i]!, limit)) return false;
  }
  return true;
}
/** Largest amount up to which a JavaScript number represents every amount exactly. */
const MAX_EXACT_AMOUNT = BigInt(Number.MAX_SAFE_INTEGER);
const NO_CLAIMS: readonly LimitClaim[] = [];
const NO_LIMITS: readonly LimitState[] = [];

function listRemaining(verdicts: readonly CommandResult[], length: number): Float64Array {
  const numbers = new Float64Array(length);
  let next = 0;
  for (const verdict of verdicts)
    for (const { remaining, resetsAt } of (verdict.ok && verdict.limits) || NO_LIMITS) {
      numbers[next++] = Number(remaining);
      numbers[next++] = resetsAt;
    }
  return numbers;
}

const isClaimOf = (claim: Limit, limit: Limit): boolean =>
  claim.scope === limit.scope &&
  claim.unit === limit.unit &&
  claim.per === limit.per &&
  claim.max === limit.max;

const ALLOWED: CommandResult = { ok: true };
const ONE_ALLOWED: readonly CommandResult[] = [ALLOWED];

export function decodeResults(
  batch: readonly StoreCommand[],
  verdicts: EncodedResults,
): readonly CommandResult[] {
  if (verdicts === 1) return ONE_ALLOWED;
  if (typeof verdicts === "number") return Array.from({ length: verdicts }, () => ALLOWED);
  if (typeof verdicts !== "string") return readRemaining(batch, verdicts);
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
      ? {
          ok: false,
          denied: limit(one.denied),
          retryAfterMs: one.retryAfterMs,
          ...(one.isFull && { isFull: true }),
        }
      : { ok: true, limits: one.map(limit) };
  });
}

/** Returns the results that `listRemaining` encoded. */
function readRemaining(
  batch: readonly StoreCommand[],
  numbers: Float64Array,
): readonly CommandResult[] {
  let next = 0;
  return batch.map((command): CommandResult => {
    if (command.do !== "reserve" || command.claims.length === 0) return ALLOWED;
    const limits: LimitState[] = [];
    for (const { scope, unit, max, per } of command.claims) {
      const left = numbers[next++]!;
      const resetsAt = numbers[next++]!;
      const remaining = typeof max === "bigint" ? BigInt(left) : left;
      limits.push({ scope, unit, max, per, remaining, resetsAt });
    }
    return { ok: true, limits };
  });
}

// Numbers call terms. In messages between threads, equal terms are sent once and then referred to
// by number.

/**
 * Maximum count of terms with a number, and the maximum per key and labels. Labels can have
 * arbitrary values, so both are bounded.
 */
const MAX_NUMBERS = 4_096;
const MAX_NUMBERS_PER_GROUP = 16;

/** Maximum count of limits with a number. Clients choose the values of members. */
const MAX_LIMITS = 16_384;

interface LimitNumbering {
  /** Encodes the claims of a reserve: the number of each limit, and the amount. */
  encodeClaims(claims: readonly LimitClaim[]): string;
  /** Returns the lines that the other thread needs before it receives these numbers. */
  takeNewLines(): string;
}

/**
 * Creates a numbering of limits. Limits are found by their scope, whose text usually is the same
 * object, so its hash is already known.
 */
function createLimitNumbering(): LimitNumbering {
  const known = new Map<string, { limit: Limit; prefix: string }[]>();
  let lines = "";
  let next = 0;
  /** Returns the number of a limit, with the colon that follows it. */
  const prefixOf = (claim: LimitClaim): string => {
    let own = known.get(claim.scope);
    if (!own) known.set(claim.scope, (own = []));
    for (const { limit, prefix } of own) if (isSameLimit(limit, claim)) return prefix;
    const { take: _, ...limit } = claim;
    const prefix = `${next++}:`;
    own.push({ limit, prefix });
    lines += `l\t${encodeLimit(limit)}\n`;
    return prefix;
  };
  return {
    encodeClaims(claims) {
      let text = "";
      for (const claim of claims) text += `${prefixOf(claim)}${claim.take},`;
      return text;
    },
    takeNewLines() {
      const newLines = lines;
      lines = "";
      if (next > MAX_LIMITS) {
        known.clear();
        next = 0;
        lines = "m\n";
      }
      return newLines;
    },
  };
}

const isSameLimit = (a: Limit, b: Limit): boolean =>
  a.unit === b.unit &&
  a.per === b.per &&
  a.max === b.max &&
  a.maxMembers === b.maxMembers &&
  a.countsOnly === b.countsOnly;

interface TermsNumbering {
  numberOf(of: CallTerms): number;
  /**
   * Returns the texts that the other thread needs before it receives these numbers. Each text is
   * returned once, in order.
   */
  takeNewTexts(): { forget: boolean; texts: readonly string[] };
}

/**
 * Creates a numbering that finds known terms by comparing fields, so that no text is built for
 * them.
 */
function createTermsNumbering(): TermsNumbering {
  const known = new TermsGroup();
  let texts: string[] = [];
  let next = 0;
  let forget = false;

  function learn(of: CallTerms, mine: NumberedTerms[]): number {
    const { key, target, privacy, labels, account, price, clientRequest, job } = of;
    // A copy, because the caller may change the object later.
    const copy: CallTerms = {
      key,
      target: { ...target },
      privacy,
      labels: { ...labels },
      account,
      price,
      clientRequest: clientRequest && { ...clientRequest },
      ...(job !== undefined && { job }),
    };
    texts.push(serializeTerms(copy));
    if (mine.unshift({ of: copy, number: next }) > MAX_NUMBERS_PER_GROUP) mine.pop();
    return next++;
  }

  return {
    numberOf(of) {
      const mine = known.find(of).terms;
      for (const one of mine) if (isSameTerms(one.of, of)) return one.number;
      return learn(of, mine);
    },
    takeNewTexts() {
      const newTexts = { forget, texts };
      texts = [];
      forget = next > MAX_NUMBERS;
      if (forget) {
        known.clear();
        next = 0;
      }
      return newTexts;
    },
  };
}

interface NumberedTerms {
  readonly of: CallTerms;
  readonly number: number;
}

/** Terms that have the same key and the same values of labels. */
class TermsGroup {
  readonly terms: NumberedTerms[] = [];
  readonly #groups = new Map<string, TermsGroup>();

  find({ key, labels }: CallTerms): TermsGroup {
    let group = this.#get(key);
    for (const label in labels) group = group.#get(labels[label] ?? "");
    return group;
  }

  #get(value: string): TermsGroup {
    let group = this.#groups.get(value);
    if (!group) this.#groups.set(value, (group = new TermsGroup()));
    return group;
  }

  clear(): void {
    this.#groups.clear();
  }
}

const isSameTerms = (a: CallTerms, b: CallTerms): boolean =>
  a.target.model === b.target.model &&
  a.target.provider === b.target.provider &&
  a.target.credential === b.target.credential &&
  a.target.protocol === b.target.protocol &&
  a.privacy === b.privacy &&
  a.price === b.price &&
  a.account === b.account &&
  a.job === b.job &&
  isShallowEqual(a.clientRequest, b.clientRequest) &&
  isShallowEqual(a.labels, b.labels);

type FlatObject = { readonly [name: string]: unknown };

function isShallowEqual(a: object | undefined, b: object | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  for (const name in a) if ((a as FlatObject)[name] !== (b as FlatObject)[name]) return false;
  for (const name in b)
    if ((b as FlatObject)[name] !== undefined && !Object.hasOwn(a, name)) return false;
  return true;
}
