// A fake provider that speaks over WebSockets. What it says is in the files beside this one.
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { WebSocketServer, type WebSocket } from "ws";

/** How a test cuts a connection. */
export interface Cut {
  /** Number of messages after which the connection is cut. */
  readonly after: number;
  /** Whose messages count. A message of the client that cuts is not read. Default: the provider's. */
  readonly of?: "provider" | "client";
  /** `reset`: without a closing handshake. A number: with this close code. */
  readonly how: "reset" | number;
}

export interface UpstreamOptions {
  /** Status of the response to every handshake, instead of accepting it. */
  readonly rejects?: number;
  /** The cut of every connection, or of the ones for which the function returns one. */
  readonly cut?: Cut | ((socket: UpstreamSocket) => Cut | undefined);
  /** Milliseconds between two messages. Default: none. */
  readonly paceMs?: number;
}

/** One connection, as the script of a provider sees it. */
export interface UpstreamSocket {
  readonly url: URL;
  readonly headers: IncomingMessage["headers"];
  /** Messages of the client, in order. */
  readonly received: string[];
  /** Messages that were sent, in order. */
  readonly sent: string[];
  send(message: object): Promise<void>;
  close(code: number, reason?: string): void;
  /** Close code of the client's side. */
  readonly closed: Promise<number>;
}

/** Answers a request that is no handshake. */
export type HttpAnswer = (
  req: IncomingMessage,
  body: Buffer,
) => Promise<{ status: number; headers?: Record<string, string>; body?: string } | undefined>;

/** Called for each connection. Returns the function that reads a message. */
export type UpstreamScript = (socket: UpstreamSocket) => (message: string) => void | Promise<void>;

export class SocketUpstream {
  readonly sockets: UpstreamSocket[] = [];
  options: UpstreamOptions = {};
  readonly #server: Server;
  readonly #wss: WebSocketServer;
  readonly #raw = new Set<Socket>();

  private constructor(server: Server, wss: WebSocketServer) {
    this.#server = server;
    this.#wss = wss;
  }

  static async start(
    script: UpstreamScript,
    options: UpstreamOptions & {
      subprotocol?: string;
      binary?: boolean;
      answer?: HttpAnswer;
    } = {},
  ): Promise<SocketUpstream> {
    const server = createServer(async (req, res) => {
      const answer = await options.answer?.(req, await buffer(req));
      res.writeHead(answer?.status ?? 426, answer?.headers).end(answer?.body);
    });
    const { subprotocol } = options;
    const wss = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      handleProtocols: (offered) =>
        subprotocol !== undefined && offered.has(subprotocol) ? subprotocol : false,
    });
    const upstream = new SocketUpstream(server, wss);
    upstream.options = options;
    server.on("connection", (socket: Socket) => {
      upstream.#raw.add(socket);
      socket.once("close", () => upstream.#raw.delete(socket));
    });
    server.on("upgrade", (req, socket, head) => {
      const { rejects } = upstream.options;
      if (rejects !== undefined) {
        const body = JSON.stringify({ error: { message: "refused", type: "refused", code: null } });
        socket.end(
          `HTTP/1.1 ${rejects} Refused\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
        );
        return;
      }
      wss.handleUpgrade(req, socket, head, (ws) =>
        upstream.#accept(ws, req, script, options.binary ?? false),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#raw) socket.destroy();
    this.#wss.close();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(ws: WebSocket, req: IncomingMessage, script: UpstreamScript, binary: boolean): void {
    let last: Promise<unknown> = Promise.resolve();
    const cutBy = async (of: "provider" | "client", count: number): Promise<boolean> => {
      const { cut: all } = this.options;
      const cut = typeof all === "function" ? all(socket) : all;
      if (!cut || (cut.of ?? "provider") !== of || count < cut.after) return false;
      if (cut.how === "reset") {
        // The last message itself still leaves.
        await new Promise((resolve) => setImmediate(resolve));
        req.socket.destroy();
      } else ws.close(cut.how, "cut");
      return true;
    };
    const socket: UpstreamSocket = {
      url: new URL(req.url ?? "/", this.url),
      headers: req.headers,
      received: [],
      sent: [],
      send: (message) => {
        const { paceMs } = this.options;
        const send = async () => {
          if (paceMs) await new Promise((resolve) => setTimeout(resolve, paceMs));
          if (ws.readyState !== ws.OPEN) return;
          const text = JSON.stringify(message);
          socket.sent.push(text);
          ws.send(binary ? Buffer.from(text) : text);
          await cutBy("provider", socket.sent.length);
        };
        return (last = last.then(send, send)) as Promise<void>;
      },
      close: (code, reason) => void (last = last.then(() => ws.close(code, reason))),
      closed: new Promise((resolve) => ws.once("close", resolve)),
    };
    this.sockets.push(socket);
    const read = script(socket);
    ws.on("error", () => {});
    ws.on("message", (data: Buffer) => {
      const text = data.toString();
      socket.received.push(text);
      void cutBy("client", socket.received.length).then((isCut) => isCut || read(text));
    });
  }
}
