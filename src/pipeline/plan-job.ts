// Plans the calls of jobs: encodes each request, and calculates its reservation. It writes nothing.
import { wallClock } from "../lib/time/wall-clock.ts";
import { fail } from "../model/error.ts";
import type { Body } from "../model/values.ts";
import type { PlannedBackground } from "../plugin/frontend.ts";
import type { EndpointBackground } from "../plugin/jobs/background.ts";
import type { PlannedLine } from "../plugin/store/job-lines.ts";
import type { Limit } from "../plugin/store/limit.ts";
import { HostCall } from "./exchange/call.ts";
import { isPaidByClient } from "./exchange/client-credential.ts";
import type { HostExchange } from "./exchange/exchange.ts";
import type { HostCandidate, MountedEndpoint } from "./exchange/mounted.ts";
import { CallTally } from "./metering/call-tally.ts";
import { planReservation } from "./metering/reserve-call.ts";
import { pinPolicy } from "./privacy/zero-retention.ts";
import { assertFiltersAvailable } from "./response/event-filters.ts";
import { encodeRequest } from "./upstream/encode-request.ts";
import type { OutgoingRequest } from "./upstream/outgoing-request.ts";

/**
 * Whether a limit counts the lines of a job. A rate would drain while the job runs, and the end of
 * the job would return amounts that others have used.
 */
export const countsForJobs = ({ per }: Limit): boolean =>
  per === "day" || per === "week" || per === "month" || per === "total";

/**
 * Plans a request that its provider runs in the background. Returns undefined if the provider has no
 * background mode.
 * @param body The request as its frontend reads it again when it is billed.
 */
export function planBackground(
  x: HostExchange,
  candidate: HostCandidate,
  body: Body,
): PlannedBackground | undefined {
  // A client's credential is not stored, so a job cannot use it.
  if (!backgroundOf(candidate.mounted.endpoint) || isPaidByClient(candidate)) return undefined;
  const pricedAt = wallClock();
  const planned = planJobLine(x, candidate);
  return {
    ...planned,
    target: { ...planned.target, isBackground: true },
    line: {
      path: x.state.routePath,
      body: Buffer.from(JSON.stringify({ ...body, stream: false })),
    },
    pricedAt,
  };
}

/** Returns the background mode of an endpoint. */
export const backgroundOf = ({ definition }: MountedEndpoint): EndpointBackground | undefined =>
  "protocol" in definition ? definition.background : undefined;

/**
 * Encodes the request and calculates its reservation. If `allowsLosses` is false, it throws if a field
 * would be dropped or approximated.
 */
export function planJobLine(
  x: HostExchange,
  candidate: HostCandidate,
  { allowsLosses = true }: { readonly allowsLosses?: boolean } = {},
): PlannedLine {
  const call = createPlannedCall(x, candidate);
  const { endpoint } = candidate.mounted;
  const out = encodeRequest(call, endpoint.protocol!, endpoint.transport!.definition);
  if (!allowsLosses && call.losses.length > 0)
    fail("unsupported", `${call.id} does not support all fields of this request in a batch.`);
  const { "accept-encoding": _, "content-type": __, ...headers } = out.headers;
  // A hard budget sets the output limit of the request.
  const reservation = reservationOf(x, call, out);
  const body = out.toChunks()!.toBuffer().toString();
  return {
    ...reservation,
    target: { ...targetOf(candidate), path: out.path, headers },
    body: /[\r\n]/.test(body) ? JSON.stringify(JSON.parse(body)) : body,
  };
}

export function createPlannedCall(x: HostExchange, candidate: HostCandidate): HostCall {
  const call = new HostCall(x, candidate, 1);
  pinPolicy(call);
  assertFiltersAvailable(call);
  return call;
}

/** Calculates the reservation of a line. It writes nothing. */
export function reservationOf(x: HostExchange, call: HostCall, out: OutgoingRequest | null) {
  const { inputs } = planReservation(call, out, new CallTally(call));
  return {
    claims: inputs.claims.filter(countsForJobs),
    holdNano: inputs.holdNano,
    price: call.info.price,
    account: x.state.admission.account?.path,
    labels: inputs.labels,
  };
}

export const targetOf = ({ provider, model, credential, mode, protocol }: HostCandidate) => ({
  provider,
  model,
  credential,
  mode,
  protocol: protocol ?? "",
});
