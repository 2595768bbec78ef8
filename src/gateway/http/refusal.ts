// How a request is turned away at the door: before it is known which protocol it speaks, so in a shape that every SDK can read.
import { STATUS_CODES, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { retryHeaders, retryWords } from "../../model/client-retry.ts";
import type { Refusal } from "./door.ts";

const body = (refusal: Refusal) =>
  JSON.stringify({
    type: "error",
    error: {
      type: refusal.status < 500 ? "invalid_request_error" : "server_error",
      code: refusal.code,
      message:
        refusal.retryAfterMs === undefined
          ? refusal.message
          : retryWords(refusal.message, refusal.retryAfterMs),
      param: null,
    },
  });

const headers = (refusal: Refusal, text: string, id: string): [string, string][] => [
  ["content-type", "application/json"],
  ["x-request-id", id],
  ["content-length", `${Buffer.byteLength(text)}`],
  ["connection", "close"],
  ...Object.entries(retryHeaders(refusal.retryAfterMs)),
  ...Object.entries(refusal.headers ?? {}),
];

/** Always ends the connection: what stands unread behind a refused head is not a request. */
export function sendRefusal(res: ServerResponse, refusal: Refusal, id: string): void {
  const text = body(refusal);
  res.writeHead(refusal.status, headers(refusal, text, id).flat());
  res.end(res.req.method === "HEAD" ? undefined : text);
}

/** Where there is no response to write on. */
export function rawRefusal(socket: Socket, refusal: Refusal, id: string): void {
  const text = body(refusal);
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? "Refused"}`,
    ...headers(refusal, text, id).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${text}`);
}
