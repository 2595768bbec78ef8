// What a call may cost, before it is sent: the estimate of its input and the hold on its budget.
//
//   hard      the worst case: dearest input unit and one byte a token, every output token up to the cap that the host
//             sets, of every model that the request names, under the dearer of the terms that were asked for and plain
//             ones. A budget cannot be overrun by an upstream that keeps to the cap.
//   expected  input as estimated, output as this key and model usually write, at least 1,024 tokens.
//             Overrun is at most concurrency × (cap − usual).
//   soft      takes one nano-dollar: a spent budget refuses, nothing else does.
//
// `claim` is what budgets take. `nano` is the row's hold, the worst case whatever the mode: a crash of which nothing is
// known is presumed to have cost that, because an estimate below the bill would be a lost bill.
import type { Price } from "../model/facts.ts";
import { chatWork } from "../model/chat-work.ts";
import type { Unit, Usage } from "../model/usage.ts";
import type { Opt } from "../model/values.ts";
import type { Portion, Work, WorkExtent } from "../model/work.ts";
import { billOf, dearest, type Bill, type Circumstances } from "./price.ts";

export interface Ask extends Circumstances {
  mode: "hard" | "expected" | "soft";
  /** null: unpriced. */
  price: Price | null;
  /** Tokens, from `inputUpTo`. */
  input: number;
  /** What the input can be at most, from `inputAtMost`. */
  inputMost?: Opt<number>;
  /** How often tools that upstream runs may run: after each run it reads all of its input again. */
  runs?: Opt<number>;
  /** Units that providers bill such tools by. */
  tools?: Opt<readonly Unit[]>;
  /** Other models that may be asked as well. */
  others?: Opt<readonly Other[]>;
  /** The client's own cap on one answer. */
  output?: Opt<number>;
  /** The model's cap. */
  limit?: Opt<number>;
  /** What this key and model usually write: a p95. */
  usual?: Opt<number>;
  /** Answers, or images. */
  n?: Opt<number>;
  /** Pictures or sound may go in or come out: the worst case counts them. */
  media?: Opt<boolean>;
  /** What the request alone decides, makes likely, and can come to at most. */
  counts?: Opt<Usage>;
  likely?: Opt<Usage>;
  atMost?: Opt<Usage>;
  /** Pixels of the largest picture that the model draws, where that is known. */
  pixels?: Opt<number>;
  /** Absent: a chat. */
  work?: Opt<Work>;
}

/** A model that a request names beside the one that it calls. */
export interface Other {
  price: Price;
  /** Its cap. */
  limit?: Opt<number>;
  /** What it can read. */
  context?: Opt<number>;
  uses?: Opt<number>;
}

export interface Hold {
  /** Null where no price holds. */
  nano: bigint | null;
  claim: bigint | null;
  /** Units that it may come to and that the price has no line for: its amounts are guesses. */
  lacks: readonly Unit[];
  /** A service tier that it asks for and that the price does not list. */
  tier: string | undefined;
  /** Output tokens of one answer that the claim pays for. */
  output: number | undefined;
  /** Output tokens that all its answers can have. */
  most: number;
}

const LEAST_OUTPUT = 1_024;
/** Where neither client nor model says: what no answer of today exceeds. */
const MOST_OUTPUT = 131_072;
const TOKENS_A_MEDIUM = 1_600;
/** What a provider tells its models of tools is billed as input: Anthropic documents up to 804 tokens of it. */
const TOLD_OF_TOOLS = 1_024;
/** Where nothing says how much a model reads: no model of today reads more. */
const MOST_CONTEXT = 2_097_152;
/** More than any request means, and small enough for every sum. */
const MOST_TOKENS = 1e9;
const MOST_ANSWERS = 1e6;
/** A billion dollars: more than any budget has left, and a number that every ledger holds. */
const MOST_NANO = 10n ** 18n;

/**
 * An estimate: three bytes a token, no tokenizer asked (English has four, CJK three, code about three; but single letters with
 * spaces have two, and letters and digits in turn one). Media are counted by the piece, their bytes left out. Never more
 * than the model can read.
 */
export function inputUpTo(of: {
  bytes: number;
  media?: Opt<{ count: number; bytes: number }>;
  context?: Opt<number>;
}): number {
  const text = Math.ceil(Math.max(0, of.bytes - (of.media?.bytes ?? 0)) / 3);
  const tokens = text + (of.media?.count ?? 0) * TOKENS_A_MEDIUM;
  return Math.min(tokens, of.context ?? tokens);
}

/**
 * The bound: a tokenizer that falls back on bytes makes at most one token of each. What is no text (a video's address, a page, a
 * conversation that upstream keeps) is bounded by what the model can read.
 */
export function inputAtMost(of: {
  bytes: number;
  tools: boolean;
  uncounted: boolean;
  context?: Opt<number>;
}): number {
  const text = of.bytes + (of.tools ? TOLD_OF_TOOLS : 0);
  if (of.uncounted) return of.context ?? Math.max(text, MOST_CONTEXT);
  return Math.min(text, of.context ?? text);
}

export function hold(ask: Ask): Hold {
  const { written } = workOf(ask);
  const output = written ? outputHeld(ask) : undefined;
  const most = written ? capOf(ask) : 0;
  const worst = ask.price && worstOf(ask, ask.price, most);
  const claim = ask.mode === "expected" ? likely(ask) : (worst?.nano ?? null);
  return {
    nano: claim === null ? null : bounded(worst?.nano ?? null),
    claim: claim !== null && ask.mode === "soft" ? 1n : bounded(claim),
    lacks: worst?.lacks ?? [],
    tier: worst?.tier,
    output,
    most: most * answers(ask),
  };
}

/** What it costs if its answer is as long as usual; null: that is not known. */
export const likely = (ask: Ask): bigint | null =>
  ask.price && dearestOf(ask, workOf(ask).written ? outputHeld(ask) : 0);

const workOf = ({ work }: Ask): Work => work ?? chatWork;

const answers = ({ n }: Ask): number => Math.min(Math.ceil(n ?? 1), MOST_ANSWERS);

const bounded = (nano: bigint | null): bigint | null =>
  nano !== null && nano > MOST_NANO ? MOST_NANO : nano;

/** Every model that is named may be asked, each as often as it may; upstream may grant the terms or not. */
function worstOf(ask: Ask, price: Price, most: number): Omit<Bill, "lines"> | null {
  const own = { ...ask, mode: "hard" } as const;
  const bill = termed(own, price, most);
  if (!bill || !ask.others) return bill;
  let { nano } = bill;
  for (const { price, limit, context, uses = 1 } of ask.others) {
    const each = { ...own, price, media: true, inputMost: context ?? ask.inputMost };
    const other = termed(each, price, limit ?? Math.max(most, MOST_OUTPUT));
    if (!other) return null;
    nano += other.nano * BigInt(Math.min(uses, MOST_ANSWERS));
  }
  return { ...bill, nano };
}

/** Under the terms that were asked for, at what the most expensive of the terms cost that upstream may grant instead. */
function termed(ask: Ask, price: Price, output: number): Bill | null {
  const bill = billed(ask, price, output);
  if (!bill || (ask.tier === undefined && !ask.facts)) return bill;
  let { nano } = bill;
  const terms = [{ tier: undefined }, { facts: undefined }, { tier: undefined, facts: undefined }];
  for (const other of terms) {
    const granted = worth({ ...ask, ...other }, price, output);
    if (granted !== null && granted > nano) nano = granted;
  }
  return { ...bill, nano };
}

/** Of the models that are named, the one that costs most: which of them answers, upstream decides. */
function dearestOf(ask: Ask, output: number): bigint | null {
  let most = worth(ask, ask.price!, output);
  for (const { price } of ask.others ?? []) {
    const nano = worth({ ...ask, price }, price, output);
    if (most === null || nano === null) return null;
    if (nano > most) most = nano;
  }
  return most;
}

/** The largest cap whose hold a budget still has room for; 0: none. What a refusal recommends. */
export function outputThatFits(left: bigint, ask: Ask): number {
  if (!ask.price || !workOf(ask).written) return 0;
  const fits = (output: number): boolean => {
    const nano = hold({ ...ask, output }).claim;
    return nano !== null && nano <= left;
  };
  let low = 0;
  let high = outputHeld(ask) + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** What one answer can have at most: the cap to set upstream, under `hard`. */
export const capOf = ({ output, limit }: Pick<Ask, "output" | "limit">): number =>
  Math.min(Math.ceil(output ?? limit ?? MOST_OUTPUT), limit ?? MOST_TOKENS);

function outputHeld(ask: Ask): number {
  const cap = capOf(ask);
  return ask.mode === "hard" ? cap : Math.min(cap, Math.max(LEAST_OUTPUT, ask.usual ?? 0));
}

/** How much of a piece it is likely to come to, whatever it costs; 0 where this work is not measured so. */
export function mostOf(ask: Ask, unit: Unit): number {
  const extent = extentOf(ask, ask.input, 0);
  for (const measure of workOf(ask).most(extent))
    for (const { units, count } of measure) if (units[0] === unit) return count;
  return 0;
}

const NONE: Usage = {};

const extentOf = (ask: Ask, input: number, output: number): WorkExtent => ({
  worst: ask.mode === "hard",
  input,
  output,
  n: answers(ask),
  runs: ask.runs ?? 0,
  tools: ask.tools ?? [],
  media: ask.media ?? false,
  size: ask.size,
  counts: ask.counts ?? NONE,
  likely: ask.likely ?? NONE,
  atMost: ask.atMost ?? NONE,
  limit: ask.limit,
  pixels: ask.pixels,
});

const worth = (ask: Ask, price: Price, output: number): bigint | null =>
  billed(ask, price, output)?.nano ?? null;

/**
 * By the first of the work's measures that the price has lines for; without one, the most that any of them is estimated at.
 * What upstream chooses is taken to be the dearest.
 */
function billed(ask: Ask, price: Price, output: number): Bill | null {
  const worst = ask.mode === "hard";
  const input = worst ? Math.max(ask.input, ask.inputMost ?? 0) : ask.input;
  const measures = workOf(ask).most(extentOf(ask, input, output));
  let most: Bill | null = null;
  for (const measure of measures) {
    const bill = costOf(measure, price, ask);
    if (!bill) return null;
    if (bill.lacks.length === 0) return bill;
    if (!most || bill.nano > most.nano) most = bill;
  }
  return most;
}

/** What of a request nothing that is sent bounds, by the measure that it is held by. Undefined: all of it is bounded. */
export function unboundedIn(ask: Ask): Portion["unbounded"] {
  const { price } = ask;
  if (!price) return undefined;
  const measures = workOf(ask).most(extentOf({ ...ask, mode: "hard" }, ask.input, capOf(ask)));
  const held = measures.find((measure) => listed(costOf(measure, price, ask)) !== null);
  return held?.find(({ unbounded }) => unbounded)?.unbounded;
}

function costOf(measure: readonly Portion[], price: Price, ask: Ask): Bill | null {
  const usage: { [unit in Unit]?: number } = {};
  // Brackets go by all that is read.
  const read = measure.find(({ units }) => units[0] === "input")?.count ?? 0;
  for (const { units, count, optional } of measure) {
    const [plain, ...others] = units;
    const found = others.length > 0 || optional ? dearest(price, units, read, ask) : plain;
    if (found === undefined && optional) continue;
    const unit = found ?? plain;
    usage[unit] = (usage[unit] ?? 0) + count;
    // Reasoning lies inside the output.
    if (unit === "reasoning") usage.output = (usage.output ?? 0) + count;
  }
  const round = { ...ask, round: "ceil" } as const;
  const known = ask.size !== undefined && ask.quality !== undefined;
  const bill = known
    ? billOf(usage, price, round)
    : billOf(usage, price, { ...round, dearest: true });
  if (!bill || bill.lacks.length === 0) return bill;
  const any = { ...round, dearest: true, size: undefined, quality: undefined };
  return (
    (known && listed(billOf(usage, price, { ...round, dearest: true }))) ||
    billOf(usage, price, any)
  );
}

const listed = (bill: Bill | null): Bill | null => (bill?.lacks.length === 0 ? bill : null);
