// Checks the head of a WebSocket handshake, after the checks of every request. If a handshake had a
// body, a proxy and the gateway could disagree on where the messages begin.
import type { IncomingMessage } from "node:http";
import type { Rejection } from "./request-guard.ts";

export const UPGRADE_REJECTED: Rejection = {
  status: 426,
  code: "upgrade",
  message: "Only HTTP/1.1 is supported.",
  headers: { upgrade: "HTTP/1.1" },
};

const HANDSHAKE_KEY = /^[+/0-9A-Za-z]{22}==$/;
/** A list of tokens without repetitions, as RFC 6455 requires. */
const TOKENS = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*$/;

const badHandshake = (code: string, message: string): Rejection => ({ status: 400, code, message });

/** Returns the rejection, or undefined if the handshake is valid. */
export function checkHandshake(req: IncomingMessage): Rejection | undefined {
  const { headers } = req;
  if (req.method !== "GET" || headers.upgrade?.toLowerCase() !== "websocket")
    return UPGRADE_REJECTED;
  if (headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0")
    return badHandshake("handshake_body", "A WebSocket handshake must not have a body.");
  if (headers["sec-websocket-version"] !== "13")
    return {
      status: 426,
      code: "websocket_version",
      message: "Only WebSocket version 13 is supported.",
      headers: { "sec-websocket-version": "13", upgrade: "websocket" },
    };
  if (!HANDSHAKE_KEY.test(headers["sec-websocket-key"] ?? ""))
    return badHandshake("handshake_key", "Missing or invalid Sec-WebSocket-Key header.");
  const offered = headers["sec-websocket-protocol"];
  if (offered === undefined) return undefined;
  const names = offered.split(",").map((name) => name.trim());
  return TOKENS.test(offered) && new Set(names).size === names.length
    ? undefined
    : badHandshake("handshake_protocol", "Invalid Sec-WebSocket-Protocol header.");
}
