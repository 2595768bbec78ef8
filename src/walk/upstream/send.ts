import { isPromise } from "../../lib/promise.ts";
import { BOUNDS } from "../../lib/bounds.ts";
import { fail, fault, faultOf } from "../../model/error.ts";
import type { HeadersIn, HeadersOut } from "../../model/values.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { blame } from "./blame.ts";
import { credentialed, renewed, tokenAge } from "./credential.ts";
import type { HostCall } from "../call.ts";
import type { Wire } from "../mounted.ts";
import { flat, type OutgoingRequest } from "./outgoing-request.ts";
import type { Pieces } from "./pieces.ts";
import { ofProvider } from "./own-code.ts";
import { noteLimit } from "./limit-scope.ts";
import { timesOf } from "./times.ts";
import { UpstreamResponse, glance } from "./response.ts";
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

/** Sends, and takes the head. For any status but 2xx the codec makes the fault. */
export async function send(
  call: HostCall,
  wire: Wire,
  out: OutgoingRequest,
): Promise<UpstreamResponse> {
  try {
    const pause = breath(call.exchange["~"].received!.bytes);
    if (pause) await pause;
    const { auth } = wire.endpoint;
    const path = `${wire.prefix}${out.path.startsWith("/") ? "" : "/"}${out.path}`;
    const unsigned: UnsignedRequest = { out, path, body: out.bytes() };
    const age = tokenAge(auth, call.candidate["~"].credential);
    const response = await signed(call, wire, unsigned);
    return isGood(response) ? response : await again(call, wire, unsigned, response, age);
  } catch (problem) {
    throw blame(problem, "target", call.provider);
  }
}

/** What was refused for a token that is over is sent once more with another one. */
async function again(
  call: HostCall,
  wire: Wire,
  unsigned: UnsignedRequest,
  refusal: UpstreamResponse,
  age: ReturnType<typeof tokenAge>,
): Promise<UpstreamResponse> {
  const { credential, endpoint } = call.candidate["~"];
  const { auth } = wire.endpoint;
  let response = refusal;
  let said = await glance(response, BOUNDS.refusal.most);
  const { status, headers } = response;
  if (await renewed(auth, credential, age, () => ({ status, headers, body: said }), status)) {
    response = await signed(call, wire, unsigned);
    if (isGood(response)) return response;
    said = await glance(response, BOUNDS.refusal.most);
  }
  return refused(response, said, endpoint.protocol!);
}

const isGood = ({ status }: UpstreamResponse): boolean => status >= 200 && status < 300;

/** What goes on the wire, but for what signs it. */
interface UnsignedRequest {
  readonly out: OutgoingRequest;
  readonly path: string;
  readonly body: Pieces | null;
}

/** Signs and sends; resolves with the head, whatever its status. */
function signed(call: HostCall, wire: Wire, unsigned: UnsignedRequest): Promise<UpstreamResponse> {
  const { out, path, body } = unsigned;
  const failed = (problem: unknown): never => {
    throw ofProvider(call, problem);
  };
  let signing: ReturnType<typeof credentialed>;
  try {
    signing = credentialed(wire.endpoint.auth, call.candidate["~"].credential, () => ({
      method: out.method,
      url: new URL(wire.origin + path),
      headers: { ...out.headers },
      body: body && body.whole(),
      signal: call.exchange.signal,
    }));
  } catch (problem) {
    return failed(problem);
  }
  if (!isPromise(signing)) return onWire(call, wire, unsigned, signing);
  return signedInTime(signing).then((own) => onWire(call, wire, unsigned, own), failed);
}

/** A scheme that asks for a token waits for another service, and no call waits for it longer than this. */
const SIGN_MS = 30_000;

async function signedInTime(signing: Promise<HeadersOut>): Promise<HeadersOut> {
  let late: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      signing,
      new Promise<never>((_, reject) => {
        late = setTimeout(
          () =>
            reject(
              fault("upstream_auth", "Its token did not come in time.", { code: "token_late" }),
            ),
          SIGN_MS,
        );
      }),
    ]);
  } finally {
    clearTimeout(late);
  }
}

function onWire(
  call: HostCall,
  wire: Wire,
  { out, path, body }: UnsignedRequest,
  own: HeadersOut,
): Promise<UpstreamResponse> {
  const x = call.exchange;
  if (x["~"].gone) fail("canceled", "The client went away.");
  const response = new UpstreamResponse(x["~"].gen.watchdog, timesOf(call));
  call.onEnd((reason) => response.abort(reason));
  x["~"].onGone.push(() => {
    if (response.status === 0) response.abort(fault("canceled", "The client went away."));
  });
  return response.go(call, wire, {
    method: out.method,
    path,
    headers: flat(out.headers, own),
    body,
  });
}

/** The fault of a refusal. */
function refused({ status, headers }: UpstreamResponse, said: Buffer, protocol: Protocol): never {
  if (status >= 300 && status < 400)
    fail("upstream", `The provider redirected (${status}); redirects are not followed.`, {
      code: "upstream_redirect",
    });
  const { kind, message, ...more } = protocol.client!.fault(status, headers, said);
  const problem = fault(kind, message, more);
  noteLimit(faultOf(problem)!, headers);
  // Half of an error is no JSON, so it cannot pass on as it is.
  if (said.length < BOUNDS.refusal.most) refusals.set(problem, { status, headers, body: said });
  throw problem;
}
