// A client of a WebSocket that a test drives message by message.
import { WebSocket } from "ws";
import { until } from "../wait.ts";

export interface ClientOptions {
  readonly key?: string;
  readonly subprotocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

export interface SocketClient {
  /** Messages that arrived, in order. */
  readonly messages: { readonly type?: string; readonly [name: string]: any }[];
  readonly subprotocol: string;
  /** Code and reason of the end. */
  readonly closed: Promise<{ code: number; reason: string }>;
  send(message: object | string | Buffer): void;
  /** Waits until so many messages of a type have arrived. */
  wait(type: string, count?: number): Promise<{ readonly [name: string]: any }>;
  count(type: string): number;
  close(code?: number): void;
  /** Ends the connection without a closing handshake. */
  reset(): void;
}

/** Thrown if the handshake is rejected. */
export class Rejected extends Error {
  readonly status: number;
  readonly body: string;
  constructor(status: number, body: string) {
    super(`${status} ${body}`);
    this.status = status;
    this.body = body;
  }
}

/** Opens a connection. `url` begins with http. */
export async function openSocket(url: string, of: ClientOptions = {}): Promise<SocketClient> {
  const ws = new WebSocket(url.replace(/^http/, "ws"), [...(of.subprotocols ?? [])], {
    perMessageDeflate: false,
    headers: { ...(of.key !== undefined && { authorization: `Bearer ${of.key}` }), ...of.headers },
  });
  const messages: SocketClient["messages"] = [];
  ws.on("message", (data: Buffer) => {
    messages.push(JSON.parse(data.toString()) as SocketClient["messages"][number]);
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    ws.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  await new Promise<void>((resolve, reject) => {
    ws.once("open", resolve);
    ws.once("error", reject);
    ws.once("unexpected-response", (_req, res) => {
      let body = "";
      res.on("data", (piece: Buffer) => (body += piece.toString()));
      res.on("end", () => reject(new Rejected(res.statusCode ?? 0, body)));
    });
  });
  ws.on("error", () => {});
  const count = (type: string) =>
    messages.filter((one) => one.type === type || one[type] !== undefined).length;
  return {
    messages,
    subprotocol: ws.protocol,
    closed,
    send: (message) =>
      ws.send(
        typeof message === "string" || Buffer.isBuffer(message) ? message : JSON.stringify(message),
      ),
    async wait(type, times = 1) {
      await until(
        () => count(type) >= times,
        () => `${times} × ${type} in ${messages.map((one) => one.type).join(", ")}`,
      );
      return messages.filter((one) => one.type === type || one[type] !== undefined)[times - 1]!;
    },
    count,
    close: (code) => ws.close(code),
    reset: () => ws.terminate(),
  };
}
