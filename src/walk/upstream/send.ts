import { BOUNDS } from "../../lib/bounds.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { HeadersIn, HeadersOut } from "../../model/values.ts";
import type { Signable } from "../../plugin/provider.ts";
import type { Timeouts } from "../../config/types.ts";
import { blame } from "./blame.ts";
import type { HostCall } from "../call.ts";
import type { HostExchange } from "../exchange.ts";
import type { Wire } from "../mounted.ts";
import { flat, type OutgoingRequest } from "./outgoing-request.ts";
import { error, UpstreamResponse, glance } from "./response.ts";
import { breath } from "../bounds/turn.ts";

/** What is known of an upstream's refusal, beside its fault: on the verbatim lane its own words pass. */
export interface UpstreamRefusal {
  status: number;
  headers: HeadersIn;
  body: Buffer;
}
const refusals = new WeakMap<object, UpstreamRefusal>();
export const refusalOf = (problem: unknown): UpstreamRefusal | undefined =>
  typeof problem === "object" && problem !== null ? refusals.get(problem) : undefined;

/** Sends, and takes the head. Anything but 2xx is the codec's to name. */
export async function send(
  call: HostCall,
  wire: Wire,
  out: OutgoingRequest,
): Promise<UpstreamResponse> {
  try {
    return await flown(call, wire, out);
  } catch (problem) {
    throw blame(problem, "target", call.provider);
  }
}

async function flown(call: HostCall, wire: Wire, out: OutgoingRequest): Promise<UpstreamResponse> {
  const x = call.exchange;
  const { provider, credential, endpoint } = call.candidate["~"];
  const pause = breath(x["~"].received!.bytes);
  if (pause) await pause;
  const body = out.bytes();
  const path = `${wire.prefix}${out.path.startsWith("/") ? "" : "/"}${out.path}`;
  /** Beside those of the request, which others have seen and may keep. */
  let signed: HeadersOut = {};
  const auth = wire.endpoint.auth;
  if (typeof auth === "function") {
    const request: Signable = {
      method: out.method,
      url: new URL(wire.origin + path),
      headers: { ...out.headers },
      body,
      signal: x.signal,
    };
    signed = await auth(request, credential.fields);
  } else if (auth !== "none") {
    const secret = credential.fields[auth.field];
    if (secret !== undefined)
      signed = { [auth.header.toLowerCase()]: `${auth.prefix ?? ""}${String(secret)}` };
  }
  if (x["~"].gone) fail("canceled", "The client went away.");
  const response = new UpstreamResponse(x["~"].gen.watchdog, hinted(provider.timeouts, x));
  call.onEnd((reason) => response.abort(reason));
  x["~"].onGone.push(() => {
    if (response.status === 0) response.abort(error("canceled", "The client went away."));
  });
  try {
    await response.go(wire, { method: out.method, path, headers: flat(out.headers, signed), body });
  } finally {
    call.unanswered = response.unanswered;
  }
  if (response.status >= 200 && response.status < 300) return response;
  const said = await glance(response, BOUNDS.refusal.most);
  if (response.status >= 300 && response.status < 400)
    fail("upstream", `The provider redirected (${response.status}); redirects are not followed.`, {
      code: "upstream_redirect",
    });
  const fault = endpoint.protocol!.client!.fault(response.status, response.headers, said);
  const problem = error(fault.kind, fault.message);
  Object.assign(faultOf(problem)!, fault);
  // Half an error is no JSON that could pass on as it is.
  if (said.length < BOUNDS.refusal.most)
    refusals.set(problem, { status: response.status, headers: response.headers, body: said });
  throw problem;
}

/** SDKs say how long they wait; nobody is served after that. */
function hinted(timeouts: Timeouts, x: HostExchange): Timeouts & { hinted?: boolean } {
  const { req, started } = x["~"];
  const said = Number(req.headers["x-stainless-timeout"]) * 1000;
  if (!(said > 0)) return timeouts;
  const left = said - (performance.now() - started);
  return left < timeouts.totalMs ? { ...timeouts, totalMs: left, hinted: true } : timeouts;
}
