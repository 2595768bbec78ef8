import { wallClock } from "../../lib/time/wall-clock.ts";
import {
  estimateHold,
  estimatedUnits,
  findUnboundedUsage,
  type HoldRequest,
  type HoldEstimate,
  outputCap,
  maxInputTokens,
  estimateInputTokens,
  type AdditionalModel,
} from "../../money/estimate.ts";
import { largestOf } from "../../model/operations/image-operation.ts";
import { fail } from "../../model/error.ts";
import { toolUnits } from "../../model/tool-units.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import { LIMIT_UNITS } from "../../plugin/store/limit-units.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import type { HostCall } from "../exchange/call.ts";
import { collectCharges, reserveRow, type ReserveInputs } from "./charges.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import type { CallTally } from "./call-tally.ts";
import { priceTermsOf } from "./price-terms.ts";
import type { Unit } from "../../model/usage.ts";
import { lowerOutputLimits } from "../../protocols/requested-amounts.ts";
import { findReportPrice, type CatalogModels } from "./call-pricing.ts";

/**
 * Reserves a call. Every limit, every budget, and the reserve row are written in one atomic store
 * command, which is durable before any byte is sent. Throws if the request is rejected before that.
 * `isRunning`: the provider has already begun the call, so the call is recorded even if a limit or
 * a missing price rejects it. Its usage counts against all limits when it is settled.
 */
export function reserveCall(
  call: HostCall,
  out: OutgoingRequest | null,
  tally: CallTally,
  options: { isRunning?: boolean } = {},
): Promise<void> {
  const { inputs, holdRequest } = planReservation(call, out, tally, options);
  return reserveRow(call, inputs, holdRequest);
}

/** The reservation of a call, before it is written. */
export interface PlannedReservation {
  readonly inputs: ReserveInputs;
  readonly holdRequest: HoldRequest;
}

/**
 * Calculates the reservation of a call. Throws if a budget applies and the cost is not known. It
 * writes nothing.
 */
export function planReservation(
  call: HostCall,
  out: OutgoingRequest | null,
  tally: CallTally,
  { isRunning = false }: { isRunning?: boolean } = {},
): PlannedReservation {
  const x = call.exchange;
  const { gen } = x.state;
  const { limits, labels, budgetMode } = collectCharges(call);
  const hasBudget = !isRunning && limits.some((l) => l.unit === "nano_usd" && !l.countsOnly);
  const models = gen.catalog.entriesOf(call.provider);
  const {
    facts: survey,
    input,
    maxInput,
    toolRuns,
    tools,
    additionalModels,
    unpricedModels,
  } = measureRequest(call, out, {
    shelf: models,
    capped: budgetMode === "hard" && !isRunning,
  });
  tally.inputEstimate = input;
  const { jobLine } = x;
  const requestTerms = priceTermsOf(call, survey);
  const { tier, size, quality, pricingAttributes } = (tally.pricing.terms = jobLine
    ? { ...requestTerms, ...jobLine.terms }
    : requestTerms);
  const at = wallClock();
  tally.pricing.pricedAt = jobLine?.pricedAt ?? at;
  const holdRequest: HoldRequest = {
    hasFixedTier: jobLine?.terms !== undefined,
    tier,
    size,
    quality,
    pricingAttributes,
    budgetMode: budgetMode ?? "expected",
    price: call.info.price ?? null,
    input,
    maxInput,
    toolRuns,
    tools,
    additionalModels,
    output: survey.maxOutput,
    // Under a hard budget, the request's output limit is sent as it is, and the provider may accept
    // one above the catalog's limit.
    modelMaxOutput:
      budgetMode === "hard" && survey.maxOutput !== undefined
        ? undefined
        : call.info.limits?.output,
    typicalOutput: gen.outputHistory.p95(tally.historyKey),
    n: survey.n,
    hasMedia: survey.media !== undefined || survey.features.includes("audio"),
    exactUsage: survey.exactUsage,
    expectedUsage: survey.expectedUsage,
    maxUsage: survey.maxUsage,
    maxPixels: largestOf(call.info.image),
    operationSpec: x.operationSpec,
    at: tally.pricing.pricedAt,
  };
  const hold = estimateHold(holdRequest);
  tally.setHold(holdRequest, hold, models);
  tally.mayHideReasoning =
    call.info.can?.reasoning !== false &&
    (!out ||
      (call.candidate.mounted.endpoint.protocol?.client?.mayHideReasoning?.(out, call) ?? true));
  const owner = x.state.admission.account ? "this key or its account" : "this key";
  if (hasBudget && hold.nano === null)
    fail(
      "quota",
      `${call.id} has no known price, and ${owner} has a budget. ${priceConfigHint(call)}`,
      {
        code: "unpriced_model",
        param: "model",
      },
    );
  if (hasBudget && (hold.unpricedUnits.length > 0 || hold.unknownTier !== undefined))
    rejectUnpricedUnit(call, hold, owner, survey.features);
  if (hasBudget && unpricedModels.length > 0)
    fail(
      "quota",
      `${unpricedModels[0]}, which this request also uses, has no known price, and ${owner} has a budget.`,
      {
        code: "unpriced_model",
        param: "model",
      },
    );
  if (hasBudget && budgetMode === "hard") rejectUnboundedCost(call, holdRequest);
  const amountOf = (unit: Limit["unit"]) =>
    amountToClaim(unit, hold.claim, input, hold.outputPerResponse, holdRequest);
  const job = jobLine?.attempt !== undefined && {
    attempt: jobLine.attempt,
    take: Object.fromEntries(JOB_UNITS.map((unit) => [unit, amountOf(unit)])),
  };
  // A call that takes no amounts is never denied. A line takes amounts from its job.
  const claims = job
    ? []
    : limits.map((limit) => ({ ...limit, take: isRunning ? 0n : amountOf(limit.unit) }));
  const holdNano = isPaidByClient(call.candidate) ? 0n : hold.nano;
  const inputs = { at, labels, claims, holdNano, price: call.info.price };
  return { inputs: job ? { ...inputs, job } : inputs, holdRequest };
}

/** Units of limits that a job reserves. Its lines do not run at the same time. */
const JOB_UNITS = LIMIT_UNITS.filter((unit) => unit !== "concurrent");

/** Throws if no field of the request limits its cost. */
function rejectUnboundedCost(call: HostCall, ask: HoldRequest): void {
  const unbounded = findUnboundedUsage(ask);
  if (unbounded)
    fail(
      "invalid",
      `Cannot determine the maximum cost of this request for ${call.id}, which a hard budget requires. ${unbounded.advice}`,
      { param: unbounded.param, code: "unbounded_cost" },
    );
}

/** Throws if a part of the bill could only be estimated. The budget could not be enforced then. */
function rejectUnpricedUnit(
  call: HostCall,
  { unpricedUnits, unknownTier }: HoldEstimate,
  owner: string,
  features: RequestFacts["features"],
): never {
  const where = `providers.${call.provider}.models[${JSON.stringify(call.model)}].price`;
  const [unit] = unpricedUnits;
  if (unit === undefined)
    return fail(
      "quota",
      `${call.id} has no price for the service tier "${unknownTier}", which this request asks for, and ${owner} has a budget. ` +
        `Omit service_tier, or add the tier to ${where}.tiers in gateway.yaml.`,
      { code: "unpriced_unit", param: "service_tier" },
    );
  const tool = features.find((feature) => toolUnits([feature]).includes(unit));
  const what = tool ? `the tool ${tool.slice(7)} (${unit})` : unit;
  return fail(
    "quota",
    `${call.id} has no price for ${what}, which this request may use, and ${owner} has a budget. ` +
      `${tool ? "Remove the tool, or add" : "Add"} ${unit} to ${where} in gateway.yaml (0 if it costs nothing).`,
    { code: "unpriced_unit", param: tool ? "tools" : "model" },
  );
}

/** Returns the missing price as a line of gateway.yaml. */
function priceConfigHint(call: HostCall): string {
  const [price, what] = call.exchange.operationSpec.pricingHint;
  return (
    `Add models: { ${JSON.stringify(call.model)}: { price: ${price} } } under ` +
    `providers.${call.provider} in gateway.yaml (${what}; price: free if it costs nothing).`
  );
}

function amountToClaim(
  unit: Limit["unit"],
  claim: bigint | null,
  input: number,
  output: number | undefined,
  ask: HoldRequest,
): bigint {
  switch (unit) {
    case "requests":
    case "concurrent":
      return 1n;
    case "input":
      return BigInt(input);
    case "output":
      return BigInt(output ?? 0);
    case "tokens":
      return BigInt(input + (output ?? 0));
    case "images":
      return BigInt(Math.ceil(ask.n ?? 1));
    case "characters":
    case "seconds":
      return BigInt(Math.ceil(estimatedUnits(ask, unit)));
    // Calls of tools that clients make through the gateway are reserved separately.
    case "calls":
      return 0n;
    // Searches that the model starts by itself are known only afterwards.
    case "searches":
      return BigInt(Math.ceil(ask.exactUsage?.searches ?? 0));
    case "nano_usd":
      return claim ?? 0n;
  }
}

// Measures the possible usage of a request. Reservations, limits, and prices are calculated only
// from the body that the provider will read, after every edit.

interface RequestMeasure {
  readonly facts: RequestFacts;
  /** Estimated input tokens. `maxInput` is the upper bound. */
  readonly input: number;
  readonly maxInput: number;
  /** Maximum number of hosted tool runs. */
  readonly toolRuns: number | undefined;
  /** Units by which providers bill hosted tools. */
  readonly tools: readonly Unit[];
  readonly additionalModels: readonly AdditionalModel[];
  /** Models that the request refers to and that have no price. */
  readonly unpricedModels: readonly string[];
}

/**
 * Features whose size the request's bytes do not show: pages, minutes, and images. The same applies
 * to a conversation that is stored at the provider.
 */
const UNMEASURABLE_FEATURES = ["documents", "audio", "vision"] as const;
/**
 * Number of tool runs after which a provider's tool loop pauses, if the request does not limit
 * them.
 */
const DEFAULT_MAX_TOOL_RUNS = 10;

const NO_TOOLS: readonly Unit[] = [];

/**
 * Measures the request. `capped`: sets an output limit before measuring, if the request has none or
 * one above the model's own.
 */
function measureRequest(
  call: HostCall,
  out: OutgoingRequest | null,
  of: { shelf: CatalogModels; capped: boolean },
): RequestMeasure {
  const received = call.exchange.state.body.received!;
  let facts = analyzeOutgoing(call, out);
  if (of.capped && out && setOutputCap(call, out, facts)) facts = analyzeOutgoing(call, out);
  if (of.capped && !out) facts = capNativeRequest(call, facts);
  if (of.capped && facts.unreadableField !== undefined) rejectUnreadable(facts.unreadableField);
  const { features, media } = facts;
  const bytes = out?.toChunks()?.length ?? received.inputBytes;
  // A conversation is limited by the model's context. An operation that generates no tokens may
  // contain many texts, each as long as the context.
  const context = call.exchange.operationSpec.generatesTokens
    ? call.info.limits?.context
    : undefined;
  const hosted = features.some((f) => f.startsWith("hosted."));
  const uncounted =
    hosted ||
    facts.readsStoredContent ||
    media !== undefined ||
    features.some(
      (f) => f.startsWith("state.") || (UNMEASURABLE_FEATURES as readonly string[]).includes(f),
    );
  const runs = hosted ? (facts.maxToolRuns ?? DEFAULT_MAX_TOOL_RUNS) : undefined;
  const [others, unpriced] = priceReferencedModels(call, facts, of.shelf, runs);
  return {
    facts,
    input: estimateInputTokens({ bytes, media, context }),
    maxInput: maxInputTokens({ bytes, tools: features.includes("tools"), uncounted, context }),
    toolRuns: runs,
    tools: hosted ? toolUnits(features) : NO_TOOLS,
    additionalModels: others,
    unpricedModels: unpriced,
  };
}

/** The provider may be able to read the field, and then the reservation would be too small. */
const rejectUnreadable = (param: string): never =>
  fail(
    "invalid",
    `Invalid ${param}: a hard budget requires a value that the gateway can read. Write a plain number such as 8, or omit the field.`,
    { param, code: "unreadable_amount" },
  );

const rejectUncappable = (call: HostCall): never =>
  fail("unsupported", `The cost of ${call.id} cannot be capped, which a hard budget requires.`, {
    code: "uncappable",
  });

/**
 * Adds an output limit to the request, so that the budget holds even if the catalog's output limit
 * of the model is wrong. Returns whether the request changed.
 */
function setOutputCap(
  call: HostCall,
  out: OutgoingRequest,
  { maxOutput, unreadableField }: RequestFacts,
): boolean {
  if (unreadableField !== undefined) return false;
  const bound = outputCap({ output: maxOutput, modelMaxOutput: call.info.limits?.output });
  if (maxOutput !== undefined && maxOutput <= bound) return false;
  const { protocol } = call.candidate.mounted.endpoint;
  if (!protocol?.operationSpec.generatesTokens) return false;
  if (!protocol.client?.capOutput) return rejectUncappable(call);
  protocol.client.capOutput(out, bound);
  lowerOutputLimits(out, Object.keys(out.toBody() ?? {}), bound);
  return true;
}

/**
 * Sets the output limit for an endpoint that sends requests itself. It receives a request that
 * contains the limit.
 */
function capNativeRequest(call: HostCall, survey: RequestFacts): RequestFacts {
  const { operationSpec } = call.exchange;
  if (!operationSpec.generatesTokens) return survey;
  if (!operationSpec.withOutputCap) return rejectUncappable(call);
  call.outputCap = outputCap({
    output: survey.maxOutput,
    modelMaxOutput: call.info.limits?.output,
  });
  return { ...survey, maxOutput: call.outputCap };
}

/**
 * Analyzes the request that will be sent. An endpoint that sends requests itself receives the
 * client's request with the changes of hooks.
 */
function analyzeOutgoing(call: HostCall, out: OutgoingRequest | null): RequestFacts {
  const { received, rewritten } = call.exchange.state.body;
  const clientFacts = received!.facts;
  if (out) {
    if (call.mode === "passthrough" && out.isUnchanged) return clientFacts;
    const protocol = call.candidate.mounted.endpoint.protocol;
    const body = out.toBody();
    return (
      (body && (protocol?.client?.analyze ?? protocol?.server?.analyze)?.(body)) ?? clientFacts
    );
  }
  if (!rewritten) return clientFacts;
  const { maxOutput, ...extent } = call.exchange.operationSpec.analyzeCost?.(rewritten) ?? {};
  return { ...clientFacts, maxOutput, ...extent, n: extent.n ?? clientFacts.n };
}

type ReferencedModels = readonly [others: readonly AdditionalModel[], unpriced: readonly string[]];
const NO_REFERENCED_MODELS: ReferencedModels = [[], []];

/**
 * Returns prices of the other models that the request refers to. `runs`: maximum number of hosted
 * tool runs, each of which may call another model.
 */
function priceReferencedModels(
  call: HostCall,
  { additionalModels }: RequestFacts,
  shelf: CatalogModels,
  runs: number | undefined,
): ReferencedModels {
  if (!additionalModels) return NO_REFERENCED_MODELS;
  const others: AdditionalModel[] = [];
  const unpriced: string[] = [];
  for (const { model, maxUses = runs } of additionalModels) {
    const price = findReportPrice(model, {
      model: call.model,
      price: call.info.price,
      shelf,
      alone: false,
    });
    const limits = shelf.get(model)?.info.limits;
    if (price) others.push({ price, maxOutput: limits?.output, context: limits?.context, maxUses });
    else unpriced.push(model);
  }
  return [others, unpriced];
}
