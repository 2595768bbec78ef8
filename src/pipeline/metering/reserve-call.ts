import { wallClock } from "../../lib/time/wall-clock.ts";
import {
  estimateHold,
  estimatedUnits,
  findUnboundedUsage,
  type HoldRequest,
  type HoldEstimate,
} from "../../money/estimate.ts";
import { largestOf } from "../../model/operations/image-operation.ts";
import { fail } from "../../model/error.ts";
import { toolUnits } from "../../model/tool-units.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import type { HostCall } from "../exchange/call.ts";
import { collectCharges, reserveRow } from "./charges.ts";
import { measureRequest } from "./request-measure.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import type { CallTally } from "./call-tally.ts";
import { priceTermsOf } from "./price-terms.ts";

/**
 * Reserves a call. Every limit, every budget, and the reserve row are written in one atomic store
 * command, which is durable before any byte is sent. Throws if the request is rejected before that.
 */
export function reserveCall(
  call: HostCall,
  out: OutgoingRequest | null,
  tally: CallTally,
): Promise<void> {
  const x = call.exchange;
  const { gen } = x.state;
  const { limits, labels, budgetMode } = collectCharges(call);
  const hasBudget = limits.some((l) => l.unit === "nano_usd");
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
    capped: budgetMode === "hard",
  });
  tally.inputEstimate = input;
  const { tier, size, quality, pricingAttributes } = (tally.pricing.terms = priceTermsOf(
    call,
    survey,
  ));
  const at = (tally.pricing.pricedAt = wallClock());
  const holdRequest: HoldRequest = {
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
    at,
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
  const claims = limits.map((limit) => ({
    ...limit,
    take: amountToClaim(
      limit,
      hold.claim,
      tally.inputEstimate,
      hold.outputPerResponse,
      holdRequest,
    ),
  }));
  return reserveRow(
    call,
    { at, labels, claims, holdNano: hold.nano, price: call.info.price },
    holdRequest,
  );
}

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

/** Throws if a part of the bill could only be estimated, because a budget could not be enforced. */
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
  limit: Limit,
  claim: bigint | null,
  input: number,
  output: number | undefined,
  ask: HoldRequest,
): bigint {
  switch (limit.unit) {
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
      return BigInt(Math.ceil(estimatedUnits(ask, limit.unit)));
    // Searches that a model starts itself are known only afterwards.
    case "searches":
      return BigInt(Math.ceil(ask.exactUsage?.searches ?? 0));
    case "nano_usd":
      return claim ?? 0n;
  }
}
