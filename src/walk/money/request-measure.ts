// What a request may come to: holds, limits and prices are computed from the body that upstream will read, after every edit,
// and from nothing else.
import { fail } from "../../model/error.ts";
import { capOf, inputAtMost, inputUpTo, type Other } from "../../money/estimate.ts";
import { toolUnits } from "../../model/tool-units.ts";
import type { Unit } from "../../model/usage.ts";
import type { Survey } from "../../plugin/survey.ts";
import { lowered } from "../../protocols/amounts.ts";
import type { HostCall } from "../call.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { priceOf, type ModelIndex } from "./model-prices.ts";

export interface RequestMeasure {
  readonly survey: Survey;
  /** Tokens, as a guess, and as a bound. */
  readonly input: number;
  readonly inputMost: number;
  /** How often tools that upstream runs may run. */
  readonly runs: number | undefined;
  /** Units that providers bill such tools by. */
  readonly tools: readonly Unit[];
  readonly others: readonly Other[];
  /** Models that it names and that have no price. */
  readonly unpriced: readonly string[];
}

/** Pages, minutes, and a conversation that upstream keeps are no bytes of the request. */
const UNCOUNTED = ["documents", "audio", "vision"] as const;
/** A server's loop of tools pauses after so many runs, where the request does not say how many there may be. */
const MOST_RUNS = 10;

const NO_TOOLS: readonly Unit[] = [];

/** `capped`: a bound that is not there, or above the model's own, is set before anything is counted. */
export function measure(
  call: HostCall,
  out: OutgoingRequest | null,
  of: { shelf: ModelIndex; capped: boolean },
): RequestMeasure {
  const received = call.exchange["~"].received!;
  let survey = surveyOf(call, out);
  if (of.capped && out && capped(call, out, survey)) survey = surveyOf(call, out);
  if (of.capped && !out) survey = boundByItself(call, survey);
  if (of.capped && survey.unreadable !== undefined) refuse(survey.unreadable);
  const { features, media } = survey;
  const bytes = out?.bytes()?.length ?? received.bytes;
  // One conversation is read at a time, and what is not written may be many texts, each as long as the model reads.
  const context = call.exchange.work.written ? call.info.limits?.context : undefined;
  const hosted = features.some((f) => f.startsWith("hosted."));
  const uncounted =
    hosted ||
    survey.kept ||
    media !== undefined ||
    features.some((f) => f.startsWith("state.") || (UNCOUNTED as readonly string[]).includes(f));
  const runs = hosted ? (survey.runs ?? MOST_RUNS) : undefined;
  const [others, unpriced] = named(call, survey, of.shelf, runs);
  return {
    survey,
    input: inputUpTo({ bytes, media, context }),
    inputMost: inputAtMost({ bytes, tools: features.includes("tools"), uncounted, context }),
    runs,
    tools: hosted ? toolUnits(features) : NO_TOOLS,
    others,
    unpriced,
  };
}

/** The provider may read it, and the hold would be too small. */
const refuse = (param: string): never =>
  fail(
    "invalid",
    `${param} cannot be read, and a hard budget needs to know it. Write a plain number such as 8, or leave the field out.`,
    { param, code: "unreadable_amount" },
  );

const uncappable = (call: HostCall): never =>
  fail("unsupported", `${call.id} cannot be capped, which a hard budget needs.`, {
    code: "uncappable",
  });

/** Should the catalogue be wrong about what a model writes at most, the budget still holds. */
function capped(call: HostCall, out: OutgoingRequest, { maxOutput, unreadable }: Survey): boolean {
  if (unreadable !== undefined) return false;
  const bound = capOf({ output: maxOutput, limit: call.info.limits?.output });
  if (maxOutput !== undefined && maxOutput <= bound) return false;
  const { protocol } = call.candidate["~"].endpoint;
  if (!protocol?.work.written) return false;
  if (!protocol.client?.cap) return uncappable(call);
  protocol.client.cap(out, bound);
  lowered(out, Object.keys(out.whole() ?? {}), bound);
  return true;
}

/** An endpoint that sends by itself is given a request with the bound in it. */
function boundByItself(call: HostCall, survey: Survey): Survey {
  const { work } = call.exchange;
  if (!work.written) return survey;
  if (!work.capped) return uncappable(call);
  call.cap = capOf({ output: survey.maxOutput, limit: call.info.limits?.output });
  return { ...survey, maxOutput: call.cap };
}

/** An endpoint that sends by itself is given the request, and what hooks made of it. */
function surveyOf(call: HostCall, out: OutgoingRequest | null): Survey {
  const { received, rewritten } = call.exchange["~"];
  const said = received!.survey;
  if (out) {
    if (call.lane === "verbatim" && out.untouched) return said;
    const protocol = call.candidate["~"].endpoint.protocol;
    const body = out.whole();
    return (body && (protocol?.client?.survey ?? protocol?.server?.survey)?.(body)) ?? said;
  }
  if (!rewritten) return said;
  const { maxOutput, ...extent } = call.exchange.work.extent?.(rewritten) ?? {};
  return { ...said, maxOutput, ...extent, n: extent.n ?? said.n };
}

type Others = readonly [others: readonly Other[], unpriced: readonly string[]];
const ALONE: Others = [[], []];

/** `runs`: of tools that the provider runs, each of which may ask another model. */
function named(
  call: HostCall,
  { models }: Survey,
  shelf: ModelIndex,
  runs: number | undefined,
): Others {
  if (!models) return ALONE;
  const others: Other[] = [];
  const unpriced: string[] = [];
  for (const { model, uses = runs } of models) {
    const price = priceOf(model, {
      model: call.model,
      price: call.info.price,
      shelf,
      alone: false,
    });
    const limits = shelf.get(model)?.info.limits;
    if (price) others.push({ price, limit: limits?.output, context: limits?.context, uses });
    else unpriced.push(model);
  }
  return [others, unpriced];
}
