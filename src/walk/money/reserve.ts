import { wallClock } from "../../lib/wall-clock.ts";
import { hold, mostOf, unboundedIn, type Ask, type Hold } from "../../money/estimate.ts";
import { largestOf } from "../../model/image-work.ts";
import { fail } from "../../model/error.ts";
import { toolUnits } from "../../model/tool-units.ts";
import type { Limit } from "../../plugin/limit.ts";
import type { Survey } from "../../plugin/survey.ts";
import type { HostCall } from "../call.ts";
import { chargesOf, reserveRow } from "./charges.ts";
import { measure } from "./request-measure.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import type { Tally } from "./tally.ts";
import { termsOf } from "./price-terms.ts";

/** Every limit, every budget and the reserve row are one atomic store call, durable before a byte leaves. What is refused before that is thrown. */
export function reserve(call: HostCall, out: OutgoingRequest | null, tally: Tally): Promise<void> {
  const x = call.exchange;
  const { gen } = x["~"];
  const { limits, labels, mode } = chargesOf(call);
  const budgeted = limits.some((l) => l.unit === "nano_usd");
  const shelf = gen.catalogue.shelf(call.provider);
  const { survey, input, inputMost, runs, tools, others, unpriced } = measure(call, out, {
    shelf,
    capped: mode === "hard",
  });
  tally.inputEstimate = input;
  const { tier, size, quality, facts } = (tally.pricing.terms = termsOf(call, survey));
  const at = (tally.pricing.at = wallClock());
  const ask: Ask = {
    tier,
    size,
    quality,
    facts,
    mode: mode ?? "expected",
    price: call.info.price ?? null,
    input,
    inputMost,
    runs,
    tools,
    others,
    output: survey.maxOutput,
    // Under a hard budget the bound that was found is sent, and a larger one than the catalog's may be read.
    limit: mode === "hard" && survey.maxOutput !== undefined ? undefined : call.info.limits?.output,
    usual: gen.usual.p95(tally.who),
    n: survey.n,
    media: survey.media !== undefined || survey.features.includes("audio"),
    counts: survey.counts,
    likely: survey.likely,
    atMost: survey.atMost,
    pixels: largestOf(call.info.image),
    work: x.work,
    at,
  };
  const held = hold(ask);
  tally.holds(ask, held, shelf);
  tally.thinks =
    call.info.can?.reasoning !== false &&
    (!out || (call.candidate["~"].endpoint.protocol?.client?.thinks?.(out, call) ?? true));
  const owner = x["~"].branch ? "this key or its account" : "this key";
  if (budgeted && held.nano === null)
    fail("quota", `${call.id} has no known price, and ${owner} has a budget. ${pricing(call)}`, {
      code: "unpriced_model",
      param: "model",
    });
  if (budgeted && (held.lacks.length > 0 || held.tier !== undefined))
    refuseUnit(call, held, owner, survey.features);
  if (budgeted && unpriced.length > 0)
    fail(
      "quota",
      `${unpriced[0]}, which this request names, has no known price, and ${owner} has a budget.`,
      {
        code: "unpriced_model",
        param: "model",
      },
    );
  if (budgeted && mode === "hard") bounded(call, ask);
  const claims = limits.map((limit) => ({
    ...limit,
    take: take(limit, held.claim, tally.inputEstimate, held.output, ask),
  }));
  return reserveRow(call, { at, labels, claims, holdNano: held.nano, price: call.info.price }, ask);
}

/** Rejects what no field that is sent bounds. */
function bounded(call: HostCall, ask: Ask): void {
  const unbounded = unboundedIn(ask);
  if (unbounded)
    fail(
      "invalid",
      `A hard budget needs to know what this request can cost at most, and nothing in it bounds that for ${call.id}. ${unbounded.advice}`,
      { param: unbounded.param, code: "unbounded_cost" },
    );
}

/** A budget cannot be kept where a part of the bill can only be guessed. */
function refuseUnit(
  call: HostCall,
  { lacks, tier }: Hold,
  owner: string,
  features: Survey["features"],
): never {
  const where = `providers.${call.provider}.models[${JSON.stringify(call.model)}].price`;
  const [unit] = lacks;
  if (unit === undefined)
    return fail(
      "quota",
      `${call.id} has no price for the service tier "${tier}", which this request asks for, and ${owner} has a budget. ` +
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

/** The line that is missing, as an operator writes it. */
function pricing(call: HostCall): string {
  const [price, what] = call.exchange.work.pricing;
  return (
    `In gateway.yaml, under providers.${call.provider}: ` +
    `models: { ${JSON.stringify(call.model)}: { price: ${price} } } (${what}; price: free if it costs nothing).`
  );
}

function take(
  limit: Limit,
  claim: bigint | null,
  input: number,
  output: number | undefined,
  ask: Ask,
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
      return BigInt(Math.ceil(mostOf(ask, limit.unit)));
    // What a model looks up by itself shows when it has.
    case "searches":
      return BigInt(Math.ceil(ask.counts?.searches ?? 0));
    case "nano_usd":
      return claim ?? 0n;
  }
}
