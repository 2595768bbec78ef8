// Plans and bills calls that end long after their request. The call of a job has one row: it is
// reserved when the job is created, and settled when the provider has reported how it ended.
import { wallClock } from "../lib/time/wall-clock.ts";
import { fail } from "../model/error.ts";
import type { ModelRequest } from "../model/request.ts";
import { calculateBill, isExact } from "../money/price.ts";
import type {
  JobCallCost,
  JobCallEnd,
  JobTarget,
  PlanCallOptions,
  PlannedCall,
} from "../plugin/jobs/job-calls.ts";
import type { EndpointVideos } from "../plugin/jobs/video.ts";
import { HostCall } from "./exchange/call.ts";
import type { ReceivedBody } from "./exchange/exchange-state.ts";
import type { HostExchange } from "./exchange/exchange.ts";
import type { HostCandidate, MountedEndpoint, MountedProvider } from "./exchange/mounted.ts";
import type { Generation } from "./generation.ts";
import { isJobTarget, requireHostExchange, reserveForJob } from "./job-lines.ts";
import { CallTally } from "./metering/call-tally.ts";
import { planReservation } from "./metering/reserve-call.ts";
import { inspect, rewrite } from "./pipeline.ts";
import { countsForJobs } from "./plan-job.ts";
import { pinPolicy } from "./privacy/zero-retention.ts";
import { route } from "./stages/route.ts";

const NO_BYTES = Buffer.alloc(0);

/** Routes a request that its frontend decoded itself, and calculates its reservation. */
export async function planJobCall(
  request: ModelRequest,
  { parentRequest, target }: PlanCallOptions,
): Promise<PlannedCall> {
  const x = requireHostExchange(parentRequest);
  const { gen, frontend, body, routing, admission } = x.state;
  const { operationSpec } = x;
  if (operationSpec.name !== request.operation)
    fail("internal", `The frontend ${x.frontend} has no protocol for ${request.operation}.`);
  body.received = receivedRequest(x, request);
  body.rewritten = request;
  await rewrite(x);
  await inspect(x);
  const { facts, pinnedTarget } = body.received;
  const { candidates } = await route({
    gen,
    frontend,
    x,
    operationSpec,
    facts,
    pinnedTarget,
    rewrittenRequest: body.rewritten,
    routing,
    admission,
  });
  const able = candidates.filter(({ mounted }) => videosOf(mounted.endpoint));
  const candidate = target ? able.find((one) => isJobTarget(target, one)) : able[0];
  return planCall(x, candidate ?? rejectJob(x.model, target != null));
}

const rejectJob = (model: string, isPinned: boolean): never =>
  isPinned
    ? fail("unsupported", `The provider that stores this object does not serve ${model} any more.`)
    : fail("unsupported", `No provider of ${model} generates videos.`, {
        code: "videos_not_supported",
        param: "model",
      });

function planCall(x: HostExchange, candidate: HostCandidate): PlannedCall {
  const call = new HostCall(x, candidate, 1);
  pinPolicy(call);
  const { inputs } = planReservation(call, null, new CallTally(call));
  const { provider, model, credential } = candidate;
  return {
    target: { provider, model, credential },
    request: x.state.body.rewritten!,
    claims: inputs.claims.filter(countsForJobs),
    holdNano: inputs.holdNano,
    price: inputs.price,
    pricedAt: inputs.at,
    labels: inputs.labels,
  };
}

function receivedRequest(x: HostExchange, request: ModelRequest): ReceivedBody {
  const { maxOutput, ...cost } = x.operationSpec.analyzeCost?.(request) ?? {};
  return {
    raw: NO_BYTES,
    inputBytes: Buffer.byteLength(JSON.stringify(request.rest)),
    spans: null,
    multipart: undefined,
    body: { model: request.model },
    facts: { features: [], references: [], maxOutput, ...cost },
    model: request.model,
    pinnedTarget: undefined,
    stream: false,
    actionType: "generate",
    action: "generate",
    originalBody: {},
    edits: undefined,
    record: undefined,
    answer: undefined,
    background: undefined,
    continues: undefined,
  };
}

/** Reserves a job's call. */
export async function reserveJobCall(
  attempt: string,
  { target, claims, holdNano, price, labels }: PlannedCall,
  parentRequest: unknown,
): Promise<void> {
  const of = { attempt, target: { ...target, protocol: null }, labels, claims, holdNano };
  return reserveForJob(requireHostExchange(parentRequest), of, price ?? undefined);
}

/** Bills a job's call once. */
export async function settleJobCall(
  gen: Generation,
  attempt: string,
  end: JobCallEnd,
): Promise<JobCallCost> {
  const cost = costOf(end);
  const { usage, outcome, upstreamId } = end;
  await gen.ledger.settle({
    do: "settle",
    at: wallClock(),
    attempt,
    state: cost.state,
    usage: usage === "unknown" ? {} : usage,
    costNano: cost.costNano,
    outcome,
    ...(upstreamId != null && { upstreamId: upstreamId.slice(0, 256) }),
  });
  return cost;
}

function costOf({ usage, price, pricedAt, size, holdNano }: JobCallEnd): JobCallCost {
  if (usage === "unknown")
    return holdNano === null
      ? { state: "unpriced", costNano: null }
      : { state: "estimated", costNano: holdNano };
  if (Object.keys(usage).length === 0) return { state: "void", costNano: 0n };
  const bill = price ? calculateBill(usage, price, { at: pricedAt, size }) : null;
  if (!bill) return { state: "unpriced", costNano: null };
  return { state: isExact(bill) ? "exact" : "estimated", costNano: bill.nano };
}

/** Returns the videos of an endpoint. */
const videosOf = ({ definition }: MountedEndpoint): EndpointVideos | undefined =>
  "videos" in definition ? definition.videos : undefined;

interface VideoEndpointOf {
  readonly provider: MountedProvider;
  readonly endpoint: MountedEndpoint;
  readonly videos: EndpointVideos;
}

/** Returns the provider of a target, and its endpoint that generates videos. */
export function findVideoEndpoint(
  gen: Generation,
  { provider: name, model }: JobTarget,
): VideoEndpointOf | undefined {
  const provider = gen.providers.get(name);
  for (const endpoint of provider?.endpoints ?? []) {
    const videos = videosOf(endpoint);
    if (videos && (endpoint.definition.servesModel?.(model) ?? true))
      return { provider: provider!, endpoint, videos };
  }
  return undefined;
}
