// What a request may come to: holds, limits and prices are computed from the body that upstream will read, after every edit,
// and from nothing else.
import { fail } from "../../model/error.ts";
import {
  outputCap,
  maxInputTokens,
  estimateInputTokens,
  type AdditionalModel,
} from "../../money/estimate.ts";
import { toolUnits } from "../../model/tool-units.ts";
import type { Unit } from "../../model/usage.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { lowerOutputLimits } from "../../protocols/requested-amounts.ts";
import type { HostCall } from "../exchange/call.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { findReportPrice, type CatalogModels } from "./model-prices.ts";

export interface RequestMeasure {
  readonly facts: RequestFacts;
  /** Tokens, as a guess, and as a bound. */
  readonly input: number;
  readonly maxInput: number;
  /** How often tools that upstream runs may run. */
  readonly toolRuns: number | undefined;
  /** Units that providers bill such tools by. */
  readonly tools: readonly Unit[];
  readonly additionalModels: readonly AdditionalModel[];
  /** Models that it names and that have no price. */
  readonly unpricedModels: readonly string[];
}

/** Pages, minutes, and a conversation that upstream keeps are no bytes of the request. */
const UNMEASURABLE_FEATURES = ["documents", "audio", "vision"] as const;
/** A server's loop of tools pauses after so many runs, where the request does not say how many there may be. */
const DEFAULT_MAX_TOOL_RUNS = 10;

const NO_TOOLS: readonly Unit[] = [];

/** `capped`: a bound that is not there, or above the model's own, is set before anything is counted. */
export function measureRequest(
  call: HostCall,
  out: OutgoingRequest | null,
  of: { shelf: CatalogModels; capped: boolean },
): RequestMeasure {
  const received = call.exchange["~"].receivedBody!;
  let facts = analyzeOutgoing(call, out);
  if (of.capped && out && setOutputCap(call, out, facts)) facts = analyzeOutgoing(call, out);
  if (of.capped && !out) facts = capNativeRequest(call, facts);
  if (of.capped && facts.unreadableField !== undefined) rejectUnreadable(facts.unreadableField);
  const { features, media } = facts;
  const bytes = out?.toChunks()?.length ?? received.inputBytes;
  // One conversation is read at a time, and what is not written may be many texts, each as long as the model reads.
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

/** The provider may read it, and the hold would be too small. */
const rejectUnreadable = (param: string): never =>
  fail(
    "invalid",
    `${param} cannot be read, and a hard budget needs to know it. Write a plain number such as 8, or leave the field out.`,
    { param, code: "unreadable_amount" },
  );

const rejectUncappable = (call: HostCall): never =>
  fail("unsupported", `${call.id} cannot be capped, which a hard budget needs.`, {
    code: "uncappable",
  });

/** Should the catalog be wrong about what a model writes at most, the budget still holds. */
function setOutputCap(
  call: HostCall,
  out: OutgoingRequest,
  { maxOutput, unreadableField }: RequestFacts,
): boolean {
  if (unreadableField !== undefined) return false;
  const bound = outputCap({ output: maxOutput, modelMaxOutput: call.info.limits?.output });
  if (maxOutput !== undefined && maxOutput <= bound) return false;
  const { protocol } = call.candidate["~"].endpoint;
  if (!protocol?.operationSpec.generatesTokens) return false;
  if (!protocol.client?.capOutput) return rejectUncappable(call);
  protocol.client.capOutput(out, bound);
  lowerOutputLimits(out, Object.keys(out.toBody() ?? {}), bound);
  return true;
}

/** An endpoint that sends by itself is given a request with the bound in it. */
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

/** An endpoint that sends by itself is given the request, and what hooks made of it. */
function analyzeOutgoing(call: HostCall, out: OutgoingRequest | null): RequestFacts {
  const { receivedBody, rewrittenRequest } = call.exchange["~"];
  const clientFacts = receivedBody!.facts;
  if (out) {
    if (call.mode === "passthrough" && out.isUnchanged) return clientFacts;
    const protocol = call.candidate["~"].endpoint.protocol;
    const body = out.toBody();
    return (
      (body && (protocol?.client?.analyze ?? protocol?.server?.analyze)?.(body)) ?? clientFacts
    );
  }
  if (!rewrittenRequest) return clientFacts;
  const { maxOutput, ...extent } =
    call.exchange.operationSpec.analyzeCost?.(rewrittenRequest) ?? {};
  return { ...clientFacts, maxOutput, ...extent, n: extent.n ?? clientFacts.n };
}

type ReferencedModels = readonly [others: readonly AdditionalModel[], unpriced: readonly string[]];
const NO_REFERENCED_MODELS: ReferencedModels = [[], []];

/** `runs`: of tools that the provider runs, each of which may ask another model. */
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
