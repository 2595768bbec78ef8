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
import { chatOperation } from "../model/operations/chat-operation.ts";
import type { Unit, Usage } from "../model/usage.ts";
import type { Opt } from "../model/values.ts";
import type {
  UsageEstimate,
  OperationSpec,
  UsageEstimateInput,
} from "../model/operations/operation-spec.ts";
import { calculateBill, mostExpensiveUnit, type Bill, type PricingContext } from "./price.ts";

export interface HoldRequest extends PricingContext {
  budgetMode: "hard" | "expected" | "soft";
  /** null: unpriced. */
  price: Price | null;
  /** Tokens, from `inputUpTo`. */
  input: number;
  /** What the input can be at most, from `inputAtMost`. */
  maxInput?: Opt<number>;
  /** How often tools that upstream runs may run: after each run it reads all of its input again. */
  toolRuns?: Opt<number>;
  /** Units that providers bill such tools by. */
  tools?: Opt<readonly Unit[]>;
  /** Other models that may be asked as well. */
  additionalModels?: Opt<readonly AdditionalModel[]>;
  /** The client's own cap on one answer. */
  output?: Opt<number>;
  /** The model's cap. */
  modelMaxOutput?: Opt<number>;
  /** What this key and model usually write: a p95. */
  typicalOutput?: Opt<number>;
  /** Answers, or images. */
  n?: Opt<number>;
  /** Pictures or sound may go in or come out: the worst case counts them. */
  hasMedia?: Opt<boolean>;
  /** What the request alone decides, makes likely, and can come to at most. */
  exactUsage?: Opt<Usage>;
  expectedUsage?: Opt<Usage>;
  maxUsage?: Opt<Usage>;
  /** Pixels of the largest picture that the model draws, where that is known. */
  maxPixels?: Opt<number>;
  /** Absent: a chat. */
  operationSpec?: Opt<OperationSpec>;
}

/** A model that a request names beside the one that it calls. */
export interface AdditionalModel {
  price: Price;
  /** Its cap. */
  maxOutput?: Opt<number>;
  /** What it can read. */
  context?: Opt<number>;
  maxUses?: Opt<number>;
}

export interface HoldEstimate {
  /** Null where no price holds. */
  nano: bigint | null;
  claim: bigint | null;
  /** Units that it may come to and that the price has no line for: its amounts are guesses. */
  unpricedUnits: readonly Unit[];
  /** A service tier that it asks for and that the price does not list. */
  unknownTier: string | undefined;
  /** Output tokens of one answer that the claim pays for. */
  outputPerResponse: number | undefined;
  /** Output tokens that all its answers can have. */
  maxOutput: number;
}

const MIN_HELD_OUTPUT = 1_024;
/** Where neither client nor model says: what no answer of today exceeds. */
const DEFAULT_MAX_OUTPUT = 131_072;
const TOKENS_PER_MEDIA = 1_600;
/** What a provider tells its models of tools is billed as input: Anthropic documents up to 804 tokens of it. */
const TOOL_PROMPT_TOKENS = 1_024;
/** Where nothing says how much a model reads: no model of today reads more. */
const DEFAULT_MAX_CONTEXT = 2_097_152;
/** More than any request means, and small enough for every sum. */
const MAX_TOKENS = 1e9;
const MAX_RESPONSES = 1e6;
/** A billion dollars: more than any budget has left, and a number that every ledger holds. */
const MAX_NANO = 10n ** 18n;

/**
 * An estimate: three bytes a token, no tokenizer asked (English has four, CJK three, code about three; but single letters with
 * spaces have two, and letters and digits in turn one). Media are counted by the piece, their bytes left out. Never more
 * than the model can read.
 */
export function estimateInputTokens(of: {
  bytes: number;
  media?: Opt<{ count: number; bytes: number }>;
  context?: Opt<number>;
}): number {
  const text = Math.ceil(Math.max(0, of.bytes - (of.media?.bytes ?? 0)) / 3);
  const tokens = text + (of.media?.count ?? 0) * TOKENS_PER_MEDIA;
  return Math.min(tokens, of.context ?? tokens);
}

/**
 * The bound: a tokenizer that falls back on bytes makes at most one token of each. What is no text (a video's address, a page, a
 * conversation that upstream keeps) is bounded by what the model can read.
 */
export function maxInputTokens(of: {
  bytes: number;
  tools: boolean;
  uncounted: boolean;
  context?: Opt<number>;
}): number {
  const text = of.bytes + (of.tools ? TOOL_PROMPT_TOKENS : 0);
  if (of.uncounted) return of.context ?? Math.max(text, DEFAULT_MAX_CONTEXT);
  return Math.min(text, of.context ?? text);
}

export function estimateHold(request: HoldRequest): HoldEstimate {
  const { generatesTokens } = operationSpecOf(request);
  const output = generatesTokens ? heldOutput(request) : undefined;
  const most = generatesTokens ? outputCap(request) : 0;
  const worst = request.price && worstCaseBill(request, request.price, most);
  const claim = request.budgetMode === "expected" ? expectedCost(request) : (worst?.nano ?? null);
  return {
    nano: claim === null ? null : capNano(worst?.nano ?? null),
    claim: claim !== null && request.budgetMode === "soft" ? 1n : capNano(claim),
    unpricedUnits: worst?.unpricedUnits ?? [],
    unknownTier: worst?.unknownTier,
    outputPerResponse: output,
    maxOutput: most * responseCount(request),
  };
}

/** What it costs if its answer is as long as usual; null: that is not known. */
export const expectedCost = (ask: HoldRequest): bigint | null =>
  ask.price &&
  mostExpensiveModelCost(ask, operationSpecOf(ask).generatesTokens ? heldOutput(ask) : 0);

const operationSpecOf = ({ operationSpec }: HoldRequest): OperationSpec =>
  operationSpec ?? chatOperation;

const responseCount = ({ n }: HoldRequest): number => Math.min(Math.ceil(n ?? 1), MAX_RESPONSES);

const capNano = (nano: bigint | null): bigint | null =>
  nano !== null && nano > MAX_NANO ? MAX_NANO : nano;

/** Every model that is named may be asked, each as often as it may; upstream may grant the terms or not. */
function worstCaseBill(ask: HoldRequest, price: Price, most: number): Omit<Bill, "lines"> | null {
  const own = { ...ask, budgetMode: "hard" } as const;
  const bill = billAtMostExpensiveTerms(own, price, most);
  if (!bill || !ask.additionalModels) return bill;
  let { nano } = bill;
  for (const { price, maxOutput, context, maxUses = 1 } of ask.additionalModels) {
    const each = { ...own, price, hasMedia: true, maxInput: context ?? ask.maxInput };
    const other = billAtMostExpensiveTerms(
      each,
      price,
      maxOutput ?? Math.max(most, DEFAULT_MAX_OUTPUT),
    );
    if (!other) return null;
    nano += other.nano * BigInt(Math.min(maxUses, MAX_RESPONSES));
  }
  return { ...bill, nano };
}

/** Under the terms that were asked for, at what the most expensive of the terms cost that upstream may grant instead. */
function billAtMostExpensiveTerms(ask: HoldRequest, price: Price, output: number): Bill | null {
  const bill = estimateBill(ask, price, output);
  if (!bill || (ask.tier === undefined && !ask.pricingAttributes)) return bill;
  let { nano } = bill;
  const terms = [
    { tier: undefined },
    { pricingAttributes: undefined },
    { tier: undefined, pricingAttributes: undefined },
  ];
  for (const other of terms) {
    const granted = estimatedCost({ ...ask, ...other }, price, output);
    if (granted !== null && granted > nano) nano = granted;
  }
  return { ...bill, nano };
}

/** Of the models that are named, the one that costs most: which of them answers, upstream decides. */
function mostExpensiveModelCost(ask: HoldRequest, output: number): bigint | null {
  let most = estimatedCost(ask, ask.price!, output);
  for (const { price } of ask.additionalModels ?? []) {
    const nano = estimatedCost({ ...ask, price }, price, output);
    if (most === null || nano === null) return null;
    if (nano > most) most = nano;
  }
  return most;
}

/** The largest cap whose hold a budget still has room for; 0: none. What a refusal recommends. */
export function maxOutputForBudget(left: bigint, ask: HoldRequest): number {
  if (!ask.price || !operationSpecOf(ask).generatesTokens) return 0;
  const fits = (output: number): boolean => {
    const nano = estimateHold({ ...ask, output }).claim;
    return nano !== null && nano <= left;
  };
  let low = 0;
  let high = heldOutput(ask) + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** What one answer can have at most: the cap to set upstream, under `hard`. */
export const outputCap = ({
  output,
  modelMaxOutput,
}: Pick<HoldRequest, "output" | "modelMaxOutput">): number =>
  Math.min(Math.ceil(output ?? modelMaxOutput ?? DEFAULT_MAX_OUTPUT), modelMaxOutput ?? MAX_TOKENS);

function heldOutput(ask: HoldRequest): number {
  const cap = outputCap(ask);
  return ask.budgetMode === "hard"
    ? cap
    : Math.min(cap, Math.max(MIN_HELD_OUTPUT, ask.typicalOutput ?? 0));
}

/** How much of a piece it is likely to come to, whatever it costs; 0 where this work is not measured so. */
export function estimatedUnits(ask: HoldRequest, unit: Unit): number {
  const extent = toEstimateInput(ask, ask.input, 0);
  for (const measure of operationSpecOf(ask).estimateUsage(extent))
    for (const { units, count } of measure) if (units[0] === unit) return count;
  return 0;
}

const NO_USAGE: Usage = {};

const toEstimateInput = (ask: HoldRequest, input: number, output: number): UsageEstimateInput => ({
  isWorstCase: ask.budgetMode === "hard",
  input,
  output,
  n: responseCount(ask),
  toolRuns: ask.toolRuns ?? 0,
  tools: ask.tools ?? [],
  hasMedia: ask.hasMedia ?? false,
  size: ask.size,
  exactUsage: ask.exactUsage ?? NO_USAGE,
  expectedUsage: ask.expectedUsage ?? NO_USAGE,
  maxUsage: ask.maxUsage ?? NO_USAGE,
  modelMaxOutput: ask.modelMaxOutput,
  maxPixels: ask.maxPixels,
});

const estimatedCost = (ask: HoldRequest, price: Price, output: number): bigint | null =>
  estimateBill(ask, price, output)?.nano ?? null;

/**
 * By the first of the work's measures that the price has lines for; without one, the most that any of them is estimated at.
 * What upstream chooses is taken to be the dearest.
 */
function estimateBill(ask: HoldRequest, price: Price, output: number): Bill | null {
  const worst = ask.budgetMode === "hard";
  const input = worst ? Math.max(ask.input, ask.maxInput ?? 0) : ask.input;
  const measures = operationSpecOf(ask).estimateUsage(toEstimateInput(ask, input, output));
  let most: Bill | null = null;
  for (const measure of measures) {
    const bill = billForMeasure(measure, price, ask);
    if (!bill) return null;
    if (bill.unpricedUnits.length === 0) return bill;
    if (!most || bill.nano > most.nano) most = bill;
  }
  return most;
}

/** What of a request nothing that is sent bounds, by the measure that it is held by. Undefined: all of it is bounded. */
export function findUnboundedUsage(ask: HoldRequest): UsageEstimate["unbounded"] {
  const { price } = ask;
  if (!price) return undefined;
  const measures = operationSpecOf(ask).estimateUsage(
    toEstimateInput({ ...ask, budgetMode: "hard" }, ask.input, outputCap(ask)),
  );
  const held = measures.find(
    (measure) => fullyPricedOrNull(billForMeasure(measure, price, ask)) !== null,
  );
  return held?.find(({ unbounded }) => unbounded)?.unbounded;
}

function billForMeasure(
  measure: readonly UsageEstimate[],
  price: Price,
  ask: HoldRequest,
): Bill | null {
  const usage: { [unit in Unit]?: number } = {};
  // Brackets go by all that is read.
  const read = measure.find(({ units }) => units[0] === "input")?.count ?? 0;
  for (const { units, count, optional } of measure) {
    const [plain, ...others] = units;
    const found =
      others.length > 0 || optional ? mostExpensiveUnit(price, units, read, ask) : plain;
    if (found === undefined && optional) continue;
    const unit = found ?? plain;
    usage[unit] = (usage[unit] ?? 0) + count;
    // Reasoning lies inside the output.
    if (unit === "reasoning") usage.output = (usage.output ?? 0) + count;
  }
  const round = { ...ask, round: "ceil" } as const;
  const known = ask.size !== undefined && ask.quality !== undefined;
  const bill = known
    ? calculateBill(usage, price, round)
    : calculateBill(usage, price, { ...round, assumeHighest: true });
  if (!bill || bill.unpricedUnits.length === 0) return bill;
  const any = { ...round, assumeHighest: true, size: undefined, quality: undefined };
  return (
    (known && fullyPricedOrNull(calculateBill(usage, price, { ...round, assumeHighest: true }))) ||
    calculateBill(usage, price, any)
  );
}

const fullyPricedOrNull = (bill: Bill | null): Bill | null =>
  bill?.unpricedUnits.length === 0 ? bill : null;
