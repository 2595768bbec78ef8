// A WebSocket client for tests: keeps what it received, and waits for more.
import { once } from "node:events";
import { WebSocket, type ClientOptions } from "ws";

export interface SocketClient extends AsyncDisposable {
  readonly ws: WebSocket;
  /** The sub-protocol that the server selected. */
  readonly protocol: string;
  /** All messages so far, parsed. */
  readonly messages: any[];
  send(message: object | string): void;
  /** Resolves to the messages up to the first that fits, from the one after the last call. */
  until(fits: (message: any) => boolean): Promise<any[]>;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<{ code: number; reason: string }>;
}

export interface DialOptions extends ClientOptions {
  readonly key?: string;
  readonly path?: string;
  readonly subprotocols?: string[];
}

/** Opens a connection. Rejects with the status and body of a rejected handshake. */
export async function dial(
  url: string,
  { key, path = "/v1/responses", subprotocols = [], headers, ...options }: DialOptions = {},
): Promise<SocketClient> {
  const ws = new WebSocket(`${url.replace(/^http/, "ws")}${path}`, subprotocols, {
    perMessageDeflate: true,
    ...options,
    headers: { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...headers },
  });
  const messages: any[] = [];
  let read = 0;
  let wake: (() => void) | undefined;
  ws.on("message", (data: Buffer, isBinary) => {
    messages.push(isBinary ? data : JSON.parse(data.toString()));
    wake?.();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    ws.once("close", (code, reason) => {
      resolve({ code, reason: reason.toString() });
      wake?.();
    }),
  );
  await new Promise<void>((resolve, reject) => {
    ws.once("open", () => resolve());
    ws.once("error", reject);
    ws.once("unexpected-response", (_req, res) => {
      let body = "";
      res.on("data", (chunk) => (body += chunk));
      res.on("end", () =>
        reject(
          Object.assign(new Error(`The handshake was rejected with ${res.statusCode}.`), {
            status: res.statusCode,
            headers: res.headers,
            body: body.startsWith("{") ? JSON.parse(body) : body,
          }),
        ),
      );
    });
  });
  ws.on("error", () => {});
  return {
    ws,
    protocol: ws.protocol,
    messages,
    closed,
    send: (message) => ws.send(typeof message === "string" ? message : JSON.stringify(message)),
    async until(fits) {
      const from = read;
      for (;;) {
        for (; read < messages.length; read++)
          if (fits(messages[read])) return messages.slice(from, ++read);
        if (ws.readyState === WebSocket.CLOSED)
          throw new Error(
            `The connection was closed after ${JSON.stringify(messages.slice(from))}.`,
          );
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    async [Symbol.asyncDispose]() {
      if (ws.readyState === WebSocket.CLOSED) return;
      const over = once(ws, "close");
      ws.terminate();
      await over;
    },
  };
}

/** Whether an event is the last one of a response. */
export const isTerminal = ({ type }: { type: string }): boolean =>
  ["response.completed", "response.failed", "response.incomplete", "error"].includes(type);
