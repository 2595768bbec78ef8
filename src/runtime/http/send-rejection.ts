// Writes the response to a rejected request. The protocol is not known yet, so the body has a
// format that every SDK can read.
import { STATUS_CODES, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { retryHeaders, appendRetryHint } from "../../model/client-retry.ts";
import type { Rejection } from "./request-guard.ts";

const toBody = (rejection: Rejection) =>
  JSON.stringify({
    type: "error",
    error: {
      type: rejection.status < 500 ? "invalid_request_error" : "server_error",
      code: rejection.code,
      message:
        rejection.retryAfterMs === undefined
          ? rejection.message
          : appendRetryHint(rejection.message, rejection.retryAfterMs),
      param: null,
    },
  });

const toHeaders = (rejection: Rejection, text: string, id: string): [string, string][] => [
  ["content-type", "application/json"],
  ["x-request-id", id],
  ["content-length", `${Buffer.byteLength(text)}`],
  ["connection", "close"],
  ...Object.entries(retryHeaders(rejection.retryAfterMs)),
  ...Object.entries(rejection.headers ?? {}),
];

/**
 * Sends a rejection and always ends the connection, because unread bytes after a rejected head must
 * not be read as a request.
 */
export function sendRejection(res: ServerResponse, rejection: Rejection, id: string): void {
  const text = toBody(rejection);
  res.writeHead(rejection.status, toHeaders(rejection, text, id).flat());
  res.end(res.req.method === "HEAD" ? undefined : text);
}

/** Sends a rejection on a socket without a response object. */
export function sendRawRejection(socket: Socket, rejection: Rejection, id: string): void {
  const text = toBody(rejection);
  const head = [
    `HTTP/1.1 ${rejection.status} ${STATUS_CODES[rejection.status] ?? "Refused"}`,
    ...toHeaders(rejection, text, id).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${text}`);
}
