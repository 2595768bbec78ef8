// Compares the ledger with a provider's bill, and names the cause of each difference.
//
// All amounts are exact integers. For each group, which is a model on one day, or its part of one
// credential, the provider's rate of
// a unit is its cost divided by its count. Let `theirs` be the provider's cost, `ours` the ledger's,
// and `E` the cost of the ledger's calls at the provider's rates:
//
//     theirs - ours = (theirs - E) + (E - ours)
//
// `theirs - E` is a difference of counts. It is caused by estimated calls, by failed calls that the
// provider billed, by calls that did not pass the gateway, or by calls that the provider did not
// bill. `E - ours` is a difference of prices, and is split by the state of the calls. The rest of
// the integer division is rounding, so the causes always add up to the difference.
import { UNITS, type Unit, type Usage } from "tollgate/plugin";
import { distribute, divideHalfEven, modelKey, type BillLine } from "./bill-line.ts";
import { divideBill, type CredentialMap, type DividedBill } from "./credentials.ts";

/**
 * A settled call of the ledger, with its corrections. If retention replaced rows by rollups, the sum
 * of several calls with the same state.
 */
export interface LedgerCall {
  readonly attempt: string;
  /** Number of calls in a sum. Undefined for a row. */
  readonly summed?: number;
  /** Days in UTC on which the call began and ended. */
  readonly startDay: string;
  readonly day: string;
  readonly model: string;
  /** Name of the credential. */
  readonly credential: string;
  readonly state: "exact" | "estimated" | "unpriced" | "void";
  /** Whether recovery settled the call after a crash. */
  readonly recovered: boolean;
  readonly usage: Usage;
  /** In nano-dollars, including corrections. 0 for a call without a price. */
  readonly nano: bigint;
}

export const CAUSES = [
  "estimated",
  "recovered",
  "unpriced",
  "pruned",
  "failed",
  "price",
  "outside",
  "unbilled",
  "uncounted",
  "other_charge",
  "rounding",
] as const;
/**
 * Cause of a difference.
 *
 * - `estimated`: calls without a complete usage report.
 * - `recovered`: calls that a crash left open.
 * - `unpriced`: calls that had no price when they were made.
 * - `pruned`: calls whose rows retention replaced by rollups, so that no call can be named.
 * - `failed`: calls that the gateway did not bill, and the provider did.
 * - `price`: calls that the provider billed at another rate.
 * - `outside`: usage of calls that did not pass the gateway.
 * - `unbilled`: usage that the provider did not bill.
 * - `uncounted`: a charge for a model without a count, so that usage and price cannot be separated.
 * - `other_charge`: a charge without a model, such as a tax, a credit, or a discount.
 * - `rounding`: fractions of a nano-dollar per call and line.
 */
export type Cause = (typeof CAUSES)[number];

export interface Difference {
  readonly cause: Cause;
  /** Theirs minus ours, in nano-dollars. */
  readonly nano: bigint;
  /** Number of calls of the ledger that have this cause. */
  readonly calls: number;
  /** IDs of these calls, and lines of the bill, up to `MAX_EXAMPLES`. */
  readonly attempts: readonly string[];
  readonly lines: readonly string[];
}

/** A model on one day, or its part of one credential. */
export interface BillGroup {
  readonly day: string;
  /** Undefined for charges without a model. */
  readonly model: string | undefined;
  /** Undefined if the bill is not divided, and for usage of keys that no credential has. */
  readonly credential: string | undefined;
  /** The provider's IDs of the projects and keys that the lines have. */
  readonly projects: readonly string[];
  readonly keys: readonly string[];
  readonly calls: number;
  readonly oursNano: bigint;
  readonly theirsNano: bigint;
  /** Counts in millionths, by unit. */
  readonly ours: Counts;
  readonly theirs: Counts;
  readonly differences: readonly Difference[];
}

/** A correction of one call. */
export interface Correction {
  readonly attempt: string;
  readonly nano: bigint;
  readonly cause: Cause;
}

export interface Comparison {
  readonly groups: readonly BillGroup[];
  /** Corrections that make the ledger equal to the bill, except for causes that concern no call. */
  readonly corrections: readonly Correction[];
}

type Counts = { readonly [U in Unit]?: bigint };

export const MAX_EXAMPLES = 20;
const PICO_PER_NANO = 1_000n;
/** Causes that a correction of calls can remove. */
const CORRECTABLE: readonly Cause[] = ["estimated", "recovered", "unpriced", "price"];

interface Group {
  readonly day: string;
  /** The ledger's name of the model, or the bill's if the ledger has no call. */
  model: string | undefined;
  readonly credential: string | undefined;
  readonly calls: LedgerCall[];
  readonly lines: BillLine[];
}

export interface CompareOptions {
  /** Divides the bill among these credentials. Empty: the bill is compared as a whole. */
  readonly credentials?: CredentialMap;
  /**
   * First and last day to compare. Calls and lines of the days next to them are needed, because a
   * call that spans midnight may be billed on either day.
   */
  readonly first?: string;
  readonly last?: string;
}

const idOf = (day: string, model: string | undefined, credential: string | undefined): string =>
  [day, model === undefined ? "" : modelKey(model), credential ?? ""].join("\n");

export function compareBill(
  calls: readonly LedgerCall[],
  lines: readonly BillLine[],
  { credentials = new Map(), first = "", last = "9999-12-31" }: CompareOptions = {},
): Comparison {
  const divided = divideBill(lines, credentials);
  const groups = new Map<string, Group>();
  const groupOf = (day: string, model: string | undefined, credential: string | undefined) => {
    const id = idOf(day, model, credential);
    let group = groups.get(id);
    if (!group) groups.set(id, (group = { day, model, credential, calls: [], lines: [] }));
    return group;
  };
  for (const line of divided.lines) groupOf(line.day, line.model, line.credential).lines.push(line);
  for (const call of assignDays(calls, groups, divided)) {
    const { day, model, credential } = call;
    const group = groupOf(day, model, divided.credentialOf(day, model, credential));
    if (group.calls.length === 0) group.model = call.model;
    group.calls.push(call);
  }
  const corrections: Correction[] = [];
  const orderOf = ({ day, model, credential }: Group) =>
    [day, model ?? "", credential ?? ""].join("\n");
  const compared = [...groups.values()]
    .filter(({ day }) => day >= first && day <= last)
    .toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
    .map((group) => compareGroup(group, corrections));
  return { groups: compared, corrections };
}

/**
 * Moves a call that spanned midnight to the day on which it began, if the provider billed it there.
 * Its usage is then missing on the later day, and in excess on the earlier day.
 */
function assignDays(
  calls: readonly LedgerCall[],
  groups: ReadonlyMap<string, Group>,
  { credentialOf }: Pick<DividedBill, "credentialOf">,
): readonly LedgerCall[] {
  if (calls.every(({ day, startDay }) => day === startDay)) return calls;
  const surplus = new Map<string, Map<Unit, bigint>>();
  const of = ({ model, credential }: LedgerCall, day: string): Map<Unit, bigint> => {
    const id = idOf(day, model, credentialOf(day, model, credential));
    let counts = surplus.get(id);
    if (!counts) {
      counts = new Map();
      for (const { unit, count } of groups.get(id)?.lines ?? [])
        if (unit !== undefined && unit !== "calls" && count !== undefined)
          counts.set(unit, (counts.get(unit) ?? 0n) + count);
      surplus.set(id, counts);
    }
    return counts;
  };
  const add = (call: LedgerCall, day: string, sign: bigint): void => {
    const counts = of(call, day);
    for (const [unit, count] of countsOf(call.usage))
      counts.set(unit, (counts.get(unit) ?? 0n) - sign * count);
  };
  for (const call of calls) add(call, call.day, 1n);
  return calls.map((call) => {
    if (call.day === call.startDay || call.state === "void") return call;
    const used = countsOf(call.usage);
    const fits =
      used.length > 0 &&
      used.every(
        ([unit, count]) =>
          (of(call, call.startDay).get(unit) ?? 0n) >= count &&
          (of(call, call.day).get(unit) ?? 0n) <= -count,
      );
    if (!fits) return call;
    add(call, call.day, -1n);
    add(call, call.startDay, 1n);
    return { ...call, day: call.startDay };
  });
}

/** Returns the counts of a usage in millionths. Reasoning is part of the output. */
const countsOf = (usage: Usage): readonly (readonly [Unit, bigint])[] =>
  UNITS.filter((unit) => unit !== "reasoning" && unit !== "requests" && (usage[unit] ?? 0) > 0).map(
    (unit) => [unit, BigInt(Math.round(usage[unit]! * 1e6))] as const,
  );

function sumCounts(calls: readonly LedgerCall[]): Map<Unit, bigint> {
  const sum = new Map<Unit, bigint>();
  for (const { usage } of calls)
    for (const [unit, count] of countsOf(usage)) sum.set(unit, (sum.get(unit) ?? 0n) + count);
  return sum;
}

/** The provider's count and cost of each unit, and the charges without a count. */
interface TheirTotals {
  readonly counts: ReadonlyMap<Unit, bigint>;
  readonly pico: ReadonlyMap<Unit, bigint>;
  /** Cost of lines whose unit has no count, in pico-dollars. */
  readonly uncountedPico: bigint;
  readonly uncountedLines: readonly BillLine[];
  /** Number of requests in millionths, if the bill counts them. */
  readonly calls: bigint | undefined;
  readonly totalPico: bigint;
}

function sumLines(lines: readonly BillLine[]): TheirTotals {
  const counts = new Map<Unit, bigint>();
  let calls: bigint | undefined;
  for (const { unit, count } of lines) {
    if (unit === undefined || count === undefined) continue;
    if (unit === "calls") calls = (calls ?? 0n) + count;
    else counts.set(unit, (counts.get(unit) ?? 0n) + count);
  }
  const pico = new Map<Unit, bigint>();
  let uncountedPico = 0n;
  const uncountedLines: BillLine[] = [];
  for (const line of lines) {
    if (line.pico === undefined || line.unit === "calls") continue;
    if (line.unit !== undefined && (counts.get(line.unit) ?? 0n) > 0n)
      pico.set(line.unit, (pico.get(line.unit) ?? 0n) + line.pico);
    else {
      uncountedPico += line.pico;
      uncountedLines.push(line);
    }
  }
  const totalPico = [...pico.values()].reduce((sum, each) => sum + each, uncountedPico);
  return { counts, pico, uncountedPico, uncountedLines, calls, totalPico };
}

/** An exact amount of pico-dollars for a number of millionths, as a fraction. */
interface Fraction {
  readonly n: bigint;
  readonly d: bigint;
}
const ZERO: Fraction = { n: 0n, d: 1n };
const add = (a: Fraction, b: Fraction): Fraction =>
  a.d === b.d ? { n: a.n + b.n, d: a.d } : { n: a.n * b.d + b.n * a.d, d: a.d * b.d };

/** Returns the cost of these counts at the provider's rates, in pico-dollars. */
function atTheirRates(counts: Iterable<readonly [Unit, bigint]>, theirs: TheirTotals): Fraction {
  let sum = ZERO;
  for (const [unit, count] of counts) {
    const pico = theirs.pico.get(unit);
    if (pico !== undefined) sum = add(sum, { n: count * pico, d: theirs.counts.get(unit)! });
  }
  return sum;
}

const toNano = ({ n, d }: Fraction): bigint => divideHalfEven(n, d * PICO_PER_NANO);

/** Class of a call, by which a difference of its price is named. */
function classOf({ state, recovered, summed }: LedgerCall): Cause {
  if (summed !== undefined) return "pruned";
  if (state === "unpriced") return "unpriced";
  if (recovered) return "recovered";
  return state === "estimated" ? "estimated" : "price";
}

/** Returns the number of calls, which is higher than the number of rows after pruning. */
const numberOf = (calls: readonly LedgerCall[]): number =>
  calls.reduce((sum, { summed = 1 }) => sum + summed, 0);

/** Collects the causes of one group. */
class Causes {
  readonly #nano = new Map<Cause, bigint>();
  readonly #calls = new Map<Cause, Set<LedgerCall>>();
  readonly #lines = new Map<Cause, Set<string>>();

  add(
    cause: Cause,
    nano: bigint,
    calls: readonly LedgerCall[] = [],
    lines: readonly BillLine[] = [],
  ) {
    if (nano === 0n) return;
    this.#nano.set(cause, (this.#nano.get(cause) ?? 0n) + nano);
    const names = this.#calls.get(cause) ?? new Set();
    for (const call of calls) names.add(call);
    this.#calls.set(cause, names);
    const ids = this.#lines.get(cause) ?? new Set();
    for (const { id } of lines) ids.add(id);
    this.#lines.set(cause, ids);
  }

  nanoOf = (cause: Cause): bigint => this.#nano.get(cause) ?? 0n;

  sum = (): bigint => [...this.#nano.values()].reduce((sum, each) => sum + each, 0n);

  list(): readonly Difference[] {
    return CAUSES.filter((cause) => this.nanoOf(cause) !== 0n).map((cause) => ({
      cause,
      nano: this.nanoOf(cause),
      calls: numberOf([...this.#calls.get(cause)!]),
      attempts: [...this.#calls.get(cause)!]
        .filter(({ summed }) => summed === undefined)
        .slice(0, MAX_EXAMPLES)
        .map(({ attempt }) => attempt),
      lines: [...this.#lines.get(cause)!].slice(0, MAX_EXAMPLES),
    }));
  }
}

function compareGroup(group: Group, corrections: Correction[]): BillGroup {
  const { calls, lines } = group;
  const billed = calls.filter(({ state }) => state !== "void");
  const theirs = sumLines(lines);
  const ours = sumCounts(billed);
  const oursNano = calls.reduce((sum, { nano }) => sum + nano, 0n);
  const theirsNano = divideHalfEven(theirs.totalPico, PICO_PER_NANO);
  const causes = new Causes();
  const isCounted = theirs.pico.size > 0;
  const hasCharges = theirs.uncountedLines.length > 0;
  if (group.model === undefined) causes.add("other_charge", theirsNano, [], lines);
  else if (!isCounted && billed.length > 0 && hasCharges)
    causes.add("uncounted", theirsNano - oursNano, billed, lines);
  else {
    nameCounts(causes, group, { theirs, ours, billed });
    namePrices(causes, theirs, billed);
    causes.add(
      billed.length === 0 ? "outside" : "uncounted",
      divideHalfEven(theirs.uncountedPico, PICO_PER_NANO),
      [],
      theirs.uncountedLines,
    );
  }
  // A failed call may have been billed by the gateway too, such as one that its hook answered.
  const voidNano = calls
    .filter(({ state }) => state === "void")
    .reduce((sum, { nano }) => sum + nano, 0n);
  if (group.model !== undefined && (isCounted || billed.length === 0 || !hasCharges))
    causes.add(
      "failed",
      -voidNano,
      calls.filter(({ nano, state }) => state === "void" && nano !== 0n),
    );
  causes.add("rounding", theirsNano - oursNano - causes.sum());
  corrections.push(...correct(causes, theirs, billed));
  return {
    day: group.day,
    model: group.model,
    credential: group.credential,
    projects: namesOf(lines, ({ project }) => project),
    keys: namesOf(lines, ({ key }) => key),
    calls: numberOf(calls),
    oursNano,
    theirsNano,
    ours: Object.fromEntries(ours),
    theirs: Object.fromEntries(theirs.counts),
    differences: causes.list(),
  };
}

const namesOf = (
  lines: readonly BillLine[],
  of: (line: BillLine) => string | undefined,
): readonly string[] =>
  [...new Set(lines.map(of).filter((name) => name !== undefined))].slice(0, MAX_EXAMPLES);

interface CountInputs {
  readonly theirs: TheirTotals;
  readonly ours: ReadonlyMap<Unit, bigint>;
  readonly billed: readonly LedgerCall[];
}

/** Names the differences of counts, at the provider's rates. */
function nameCounts(
  causes: Causes,
  { calls, lines }: Group,
  { theirs, ours, billed }: CountInputs,
): void {
  const guessed = billed.filter((call) => call.state === "estimated");
  const failed = calls.filter(({ state }) => state === "void");
  const guessedCounts = sumCounts(guessed);
  const oursCalls = BigInt(numberOf(billed)) * 1_000_000n;
  const extraCalls = theirs.calls === undefined ? undefined : theirs.calls - oursCalls;
  for (const [unit, pico] of theirs.pico) {
    const count = theirs.counts.get(unit)!;
    const excess = count - (ours.get(unit) ?? 0n);
    if (excess === 0n) continue;
    const nano = (part: bigint) => divideHalfEven(part * pico, count * PICO_PER_NANO);
    const inUnit = lines.filter((line) => line.unit === unit);
    const bound = guessedCounts.get(unit) ?? 0n;
    // With as many calls on both sides, only an estimate can be wrong.
    const isSameCalls = extraCalls === 0n && guessed.length > 0;
    const size = excess < 0n ? -excess : excess;
    const byGuess = isSameCalls ? size : size < bound ? size : bound;
    const guess = excess < 0n ? -byGuess : byGuess;
    for (const [cause, of] of splitGuess(guess, guessed, unit))
      causes.add(
        cause,
        nano(of),
        guessed.filter((call) => classOf(call) === cause),
        inUnit,
      );
    const rest = excess - guess;
    if (rest < 0n) causes.add("unbilled", nano(rest), billed, inUnit);
    else if (
      rest > 0n &&
      extraCalls !== undefined &&
      extraCalls > 0n &&
      extraCalls <= BigInt(numberOf(failed)) * 1_000_000n
    )
      causes.add("failed", nano(rest), failed, inUnit);
    else if (rest > 0n) causes.add("outside", nano(rest), [], inUnit);
  }
}

/** Splits a count among estimated, recovered, and pruned calls, by their own counts. */
function splitGuess(
  guess: bigint,
  guessed: readonly LedgerCall[],
  unit: Unit,
): readonly (readonly [Cause, bigint])[] {
  if (guess === 0n) return [];
  const classes = [...Map.groupBy(guessed, classOf)];
  const counts = classes.map(([, calls]) => sumCounts(calls).get(unit) ?? 0n);
  const weights = counts.some((count) => count > 0n)
    ? counts
    : classes.map(([, calls]) => BigInt(numberOf(calls)));
  const parts = distribute(guess, weights);
  return classes.map(([cause], i) => [cause, parts[i]!] as const);
}

/** Names the differences of prices: the cost of the calls at the provider's rates, minus ours. */
function namePrices(causes: Causes, theirs: TheirTotals, billed: readonly LedgerCall[]): void {
  for (const [cause, members] of Map.groupBy(billed, classOf)) {
    const counts = sumCounts(members);
    // Usage that the provider did not bill at all has no rate.
    const isBilled = [...counts.keys()].some((unit) => theirs.pico.has(unit));
    const isComplete = [...counts.keys()].every((unit) => theirs.pico.has(unit));
    const ours = members.reduce((sum, { nano }) => sum + nano, 0n);
    const nano = toNano(atTheirRates(counts, theirs)) - ours;
    const size = nano < 0n ? -nano : nano;
    if (!isBilled) causes.add("unbilled", -ours, members);
    // Each call, and each line of the bill, is rounded once.
    else if (
      (cause === "price" || cause === "pruned") &&
      size <= BigInt(numberOf(members) + theirs.pico.size)
    )
      causes.add("rounding", nano, members);
    else
      causes.add(cause === "price" && !isComplete && nano < 0n ? "unbilled" : cause, nano, members);
  }
}

/** Distributes the correctable causes of a group among its calls. */
function correct(
  causes: Causes,
  theirs: TheirTotals,
  billed: readonly LedgerCall[],
): readonly Correction[] {
  const byClass = Map.groupBy(billed, classOf);
  return CORRECTABLE.flatMap((cause) => {
    const nano = causes.nanoOf(cause);
    const members = byClass.get(cause) ?? [];
    if (nano === 0n || members.length === 0) return [];
    const weights = members.map((call) => toNano(atTheirRates(countsOf(call.usage), theirs)));
    return distribute(nano, weights)
      .map((part, i): Correction => ({ attempt: members[i]!.attempt, nano: part, cause }))
      .filter((correction) => correction.nano !== 0n);
  });
}
