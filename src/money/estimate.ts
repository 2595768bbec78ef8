// Estimates a call's cost before it is sent: the expected input and the reservation on its budget.
//
//   hard      the worst case: the most expensive input unit at one byte per token, and every output
//             token up to the cap that the host sets. It covers every model that the request names,
//             under the requested or the plain terms, whichever cost more. An upstream that respects
//             the cap cannot overrun a budget.
//   expected  input as estimated, and output as this key and model usually produce, at least 1,024
//             tokens. The overrun is at most concurrency × (cap − usual).
//   soft      reserves 1 nano-dollar. A request is rejected only if the budget is used up.
//
// `claim` is the amount that budgets reserve. `nano` is the amount in the row of the reservation,
// which is the highest possible cost in every mode. After a crash with an unknown outcome, the call
// is assumed to have cost `nano`, because a lower estimate could lose a bill.
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
  /** Whether the provider always applies the tier. Default: it may apply no tier instead. */
  hasFixedTier?: boolean;
  budgetMode: "hard" | "expected" | "soft";
  /** Price of the model. `null`: no price is known. */
  price: Price | null;
  /** Estimated input tokens, from `estimateInputTokens`. */
  input: number;
  /** Maximum input tokens, from `maxInputTokens`. */
  maxInput?: Opt<number>;
  /**
   * Maximum number of runs of hosted tools at the provider. After each run, the model reads its
   * complete input again.
   */
  toolRuns?: Opt<number>;
  /** Units in which providers bill such tools. */
  tools?: Opt<readonly Unit[]>;
  /** Other models that may also be called. */
  additionalModels?: Opt<readonly AdditionalModel[]>;
  /** The client's own cap on the output tokens of one response. */
  output?: Opt<number>;
  /** The model's output cap, in tokens. */
  modelMaxOutput?: Opt<number>;
  /** Usual output of this key and model, in tokens (p95). */
  typicalOutput?: Opt<number>;
  /** Number of responses or images. */
  n?: Opt<number>;
  /** Whether images or audio may be in the input or output. The worst case includes them. */
  hasMedia?: Opt<boolean>;
  /** Usage that follows from the request alone: exact, expected, and maximum. */
  exactUsage?: Opt<Usage>;
  expectedUsage?: Opt<Usage>;
  maxUsage?: Opt<Usage>;
  /** Pixels of the largest image that the model generates, if known. */
  maxPixels?: Opt<number>;
  /** Default: chat. */
  operationSpec?: Opt<OperationSpec>;
}

/** A model that a request names in addition to the called model. */
export interface AdditionalModel {
  price: Price;
  /** Output cap of the model, in tokens. */
  maxOutput?: Opt<number>;
  /** Context window of the model, in tokens. */
  context?: Opt<number>;
  maxUses?: Opt<number>;
}

export interface HoldEstimate {
  /** Amount for the ledger row. `null` if no price applies. */
  nano: bigint | null;
  claim: bigint | null;
  /**
   * Units that the call may use and for which the price has no line. Their amounts are estimates.
   */
  unpricedUnits: readonly Unit[];
  /** Requested service tier that the price does not list. */
  unknownTier: string | undefined;
  /** Output tokens of one response that the claim covers. */
  outputPerResponse: number | undefined;
  /** Maximum output tokens of all responses together. */
  maxOutput: number;
}

const MIN_HELD_OUTPUT = 1_024;
/**
 * Number of output tokens to assume if neither the client nor the model sets a limit. The limit of
 * every current model is lower or equal.
 */
const DEFAULT_MAX_OUTPUT = 131_072;
const TOKENS_PER_MEDIA = 1_600;
/**
 * Input tokens that a provider adds to describe hosted tools to the model. Anthropic documents up
 * to 804.
 */
const TOOL_PROMPT_TOKENS = 1_024;
/**
 * Context window to assume if it is unknown. The context window of every current model is smaller
 * or equal.
 */
const DEFAULT_MAX_CONTEXT = 2_097_152;
/** Upper limit in tokens: above any real request, and small enough for all sums. */
const MAX_TOKENS = 1e9;
const MAX_RESPONSES = 1e6;
/** 1 billion US dollars: above any budget, and representable in every ledger. */
const MAX_NANO = 10n ** 18n;

/**
 * Estimates the input tokens at 3 bytes per token, without a tokenizer. English has about 4 bytes
 * per token, CJK and code about 3. Single letters with spaces have 2, and alternating letters and
 * digits 1. Media count per piece, and their bytes are excluded. The result never exceeds the
 * context window.
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
 * Returns an upper bound on the input tokens. A tokenizer with a byte fallback produces at most one
 * token per byte. Input that the request does not contain as text (a video's URL, a page, a
 * conversation stored at the provider) is limited by the context window.
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

/** Returns the cost of a response of typical length, or null if that length is unknown. */
export const expectedCost = (ask: HoldRequest): bigint | null =>
  ask.price &&
  mostExpensiveModelCost(ask, operationSpecOf(ask).generatesTokens ? heldOutput(ask) : 0);

const operationSpecOf = ({ operationSpec }: HoldRequest): OperationSpec =>
  operationSpec ?? chatOperation;

const responseCount = ({ n }: HoldRequest): number => Math.min(Math.ceil(n ?? 1), MAX_RESPONSES);

const capNano = (nano: bigint | null): bigint | null =>
  nano !== null && nano > MAX_NANO ? MAX_NANO : nano;

/**
 * Computes the highest possible cost. Every named model may be called up to its maximum number of
 * uses, and the provider may or may not apply the requested terms.
 */
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

/**
 * Returns the bill under the requested terms, with the highest amount of these and any other terms
 * that upstream may grant instead.
 */
function billAtMostExpensiveTerms(ask: HoldRequest, price: Price, output: number): Bill | null {
  const bill = estimateBill(ask, price, output);
  if (!bill || (ask.tier === undefined && !ask.pricingAttributes)) return bill;
  let { nano } = bill;
  const terms = ask.hasFixedTier
    ? [{ pricingAttributes: undefined }]
    : [
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

/**
 * Returns the estimate for the most expensive of the named models, because the provider decides
 * which model responds.
 */
function mostExpensiveModelCost(ask: HoldRequest, output: number): bigint | null {
  let most = estimatedCost(ask, ask.price!, output);
  for (const { price } of ask.additionalModels ?? []) {
    const nano = estimatedCost({ ...ask, price }, price, output);
    if (most === null || nano === null) return null;
    if (nano > most) most = nano;
  }
  return most;
}

/**
 * Returns the largest output limit whose reservation fits the remaining budget, or 0. The rejection
 * of a request recommends this value.
 */
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

/** Maximum output tokens of one response. In `hard` mode, this cap is sent upstream. */
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

/**
 * Returns the expected count of a unit, regardless of its cost, or 0 if the operation is not
 * measured in this unit.
 */
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
 * Uses the first measure of the operation whose units all have a price. If there is no such measure,
 * returns the most expensive estimate of all measures. For choices of the provider, the most
 * expensive option is assumed.
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

/**
 * Returns the part of a request's usage that no field limits, in the measure that the reservation
 * uses. Undefined if everything is limited.
 */
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
  // Price brackets depend on all input.
  const read = measure.find(({ units }) => units[0] === "input")?.count ?? 0;
  for (const { units, count, optional } of measure) {
    const [plain, ...others] = units;
    const found =
      others.length > 0 || optional ? mostExpensiveUnit(price, units, read, ask) : plain;
    if (found === undefined && optional) continue;
    const unit = found ?? plain;
    usage[unit] = (usage[unit] ?? 0) + count;
    // Reasoning tokens are included in the output.
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
