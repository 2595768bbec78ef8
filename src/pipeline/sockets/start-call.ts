// Sets up a call whose audio does not pass through the gateway, such as one of WebRTC. The socket
// that observes the call is opened before the client can begin to speak, so no part of the call is
// unmetered.
import { text } from "node:stream/consumers";
import { fail } from "../../model/error.ts";
import type { RouteResponse } from "../../plugin/frontend.ts";
import type { EndpointSocket } from "../../plugin/provider.ts";
import type { CallRequest } from "../../plugin/socket.ts";
import { parseError } from "../../protocols/failure/parse-error.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { MountedSocket } from "../exchange/mounted.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { toProviderFault } from "../upstream/provider-failure.ts";
import { readSession, tryCandidates, type OpenRelay } from "./open-relay.ts";
import {
  definedOnly,
  openProviderSocket,
  signRequest,
  type MessageBounds,
} from "../upstream/provider-socket.ts";

/** A call that a provider has accepted, with the socket that observes it. */
export interface StartedCall {
  readonly relay: OpenRelay;
  /** Response for the client. */
  readonly response: RouteResponse;
  /** Ends the call. Never rejects. */
  hangUp(): Promise<void>;
}

/** Sets up a call for a request that was admitted. Rejects with the fault for the client. */
export async function startCall(
  x: HostExchange,
  socket: MountedSocket,
  body: Buffer,
  bounds: MessageBounds,
): Promise<StartedCall> {
  if (x.privacy !== "off")
    fail("privacy", "Calls are not supported with zero data retention. Use a WebSocket.", {
      code: "zdr_unavailable",
    });
  const setup = socket.frontend.protocol!.socket!.calls!;
  const contentType = x.state.connection.req.headers["content-type"] ?? "";
  const session = readSession(x, socket);
  const { model, encode } = await setup.readRequest({ contentType, body, query: x.query, session });
  const { target, made } = await tryCandidates(
    x,
    socket,
    { model, session },
    async (call, definition) => {
      const { calls } = definition;
      if (!calls)
        return fail("unsupported", `${call.id} has no calls. Connect with a WebSocket.`, {
          param: "model",
          code: "calls_unsupported",
        });
      const answer = await send(call, calls.path, await encode(call.model));
      const id = setup.callId(answer.headers);
      if (id === undefined)
        return fail("upstream", "The provider did not name the call.", { code: "call_unnamed" });
      const hangUp = () =>
        send(call, calls.hangUpPath(id), undefined).then(
          () => {},
          (err: unknown) => x.state.gen.log.debug({ request: x.id, err }, "hanging up failed"),
        );
      try {
        const observed: EndpointSocket = { ...definition, path: calls.observePath(id) };
        return { answer, hangUp, provider: await openProviderSocket(call, observed, bounds) };
      } catch (problem) {
        // Without the socket, the usage of the call could not be metered.
        await hangUp();
        throw problem;
      }
    },
  );
  const { answer, hangUp, provider } = made;
  const { location } = answer.headers;
  return {
    relay: { target, provider },
    hangUp,
    response: {
      status: answer.status,
      headers: {
        "content-type": String(answer.headers["content-type"] ?? "application/sdp"),
        ...(location !== undefined && { location: String(location) }),
      },
      body: Buffer.from(answer.body),
    },
  };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** Sends a POST request. Rejects with the provider's error. */
async function send(
  call: HostCall,
  path: string,
  request: CallRequest | undefined,
): Promise<Answer> {
  const { pool } = call.candidate.mounted.endpoint.transport!;
  const signed = await signRequest(call, "POST", { path });
  try {
    const { statusCode, headers, body } = await pool.request({
      method: "POST",
      path: signed.path,
      headers: {
        ...definedOnly(signed.headers),
        ...(request && { "content-type": request.contentType }),
      },
      body: request?.body ?? null,
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
    });
    const content = await text(body);
    if (statusCode < 400) return { status: statusCode, headers, body: content };
    const { kind, message, ...more } = parseError(statusCode, headers, Buffer.from(content));
    return fail(kind, message, more);
  } catch (problem) {
    throw attributeFault(toProviderFault(call, problem), "target", call.provider);
  }
}

/** Time in milliseconds within which a provider must answer. */
const ANSWER_TIMEOUT_MS = 15_000;
