// Measures the possible usage of a request. Reservations, limits, and prices are calculated only
// from the body that the provider will read, after every edit.
import { fail } from "../../model/error.ts";
import {
  outputCap,
  maxInputTokens,
  estimateInputTokens,
  type AdditionalModel,
} from "../../money/estimate.ts";
import { toolUnits } from "../../model/tool-units.ts";
import type { Unit } from "../../model/usage.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { lowerOutputLimits } from "../../protocols/requested-amounts.ts";
import type { HostCall } from "../exchange/call.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { findReportPrice, type CatalogModels } from "./call-pricing.ts";

export interface RequestMeasure {
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
 * to a conversation that the provider stores.
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
export function measureRequest(
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
