// Encodes an error that concerns a WebSocket, and not the response of one request.
import { retryAfterMsFor, retryHeaders, withRetryHint } from "../../model/client-retry.ts";
import { ERRORS, type Fault } from "../../model/error.ts";
import type { RequestHead } from "../../plugin/exchange.ts";
import type { ErrorResponse } from "../../plugin/protocol.ts";
import type { SocketError } from "../../plugin/socket.ts";
import type { MountedFrontend } from "../exchange/mounted.ts";
import type { Generation } from "../generation.ts";
import { createPlainError } from "../stages/reject.ts";
import { toClientFault } from "../upstream/provider-failure.ts";

/** Returns the error that an HTTP client of the same frontend would receive. */
export function renderSocketError(
  gen: Generation,
  frontend: MountedFrontend,
  handshake: RequestHead,
  fault: Fault,
): SocketError {
  const clientFault = withRetryHint(toClientFault(gen, fault));
  const { id } = handshake;
  let encoded: ErrorResponse | undefined;
  try {
    encoded =
      frontend.plugin.encodeFault?.(clientFault, handshake, { id }) ??
      frontend.server?.encodeFault(clientFault, { id });
  } catch (err) {
    gen.log.error({ request: id, err }, `${frontend.name} could not encode an error`);
  }
  return {
    status: encoded?.status ?? ERRORS[fault.kind][0],
    body: encoded?.body ?? createPlainError(clientFault, id),
    headers: retryHeaders(retryAfterMsFor(fault)),
  };
}
