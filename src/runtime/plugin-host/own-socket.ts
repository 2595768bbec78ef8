// Opens WebSockets of plugins at the public port of their own gateway, like those of any client.
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { connect as connectTo } from "node:net";
import { text } from "node:stream/consumers";
import { WebSocket, type ClientOptions } from "ws";
import { createFault, ERRORS, type ErrorKind } from "../../model/error.ts";
import { definedOnly } from "../../pipeline/upstream/provider-socket.ts";
import type { ClosedSocket, OwnSocket, OwnSocketOptions } from "../../plugin/context.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import type { LocalEndpoint } from "../http/local-endpoint.ts";

const HANDSHAKE_TIMEOUT_MS = 20_000;
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Messages that may wait for the plugin before the gateway is no longer read. */
const MAX_WAITING = 64;

/** Resolves when the connection is open. Rejects with the error that a client would get. */
export async function openOwnSocket(
  { origin, socket, certificateFile }: LocalEndpoint,
  path: string,
  { headers = {}, subprotocols = [], signal }: OwnSocketOptions,
): Promise<OwnSocket> {
  signal?.throwIfAborted();
  const options: ClientOptions & { allowPartialTrustChain?: boolean } = {
    headers: definedOnly(headers),
    perMessageDeflate: false,
    followRedirects: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    maxPayload: MAX_MESSAGE_BYTES,
    // The certificate is the listener's own, so its issuer and its name do not matter.
    ...(certificateFile !== undefined && {
      ca: await readFile(certificateFile),
      allowPartialTrustChain: true,
      // Node expects undefined for an accepted name.
      checkServerIdentity: (() => undefined) as never,
    }),
    ...(socket !== undefined && { createConnection: () => connectTo(socket) }),
  };
  const ws = new WebSocket(origin.replace(/^http/, "ws") + path, [...subprotocols], options);
  const opened = new OpenedSocket(ws);
  const abort = () => ws.terminate();
  signal?.addEventListener("abort", abort, { once: true });
  void opened.closed.then(() => signal?.removeEventListener("abort", abort));
  await new Promise<void>((resolve, reject) => {
    ws.once("open", resolve);
    ws.once("error", (cause) =>
      reject(createFault("unavailable", "The connection was not opened.", { cause })),
    );
    ws.once("unexpected-response", (_request, response: IncomingMessage) => {
      void readRejection(response).then(reject, reject);
    });
  });
  return opened;
}

async function readRejection(response: IncomingMessage): Promise<Error> {
  const status = response.statusCode ?? 502;
  const body = await text(response);
  const { message, code } = parseErrorBody(body);
  const kinds = Object.keys(ERRORS) as ErrorKind[];
  const kind = kinds.find((one) => ERRORS[one][0] === status) ?? "upstream";
  return createFault(kind, message ?? `The connection was rejected with status ${status}.`, {
    code,
  });
}

function parseErrorBody(body: string): { message?: string; code?: string } {
  try {
    const { error } = JSON.parse(body) as { error?: { message?: unknown; code?: unknown } };
    return {
      ...(typeof error?.message === "string" && { message: error.message }),
      ...(typeof error?.code === "string" && { code: error.code }),
    };
  } catch {
    return {};
  }
}

class OpenedSocket implements OwnSocket {
  readonly closed: Promise<ClosedSocket>;
  readonly #ws: WebSocket;
  readonly #messages: SocketMessage[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;

  constructor(ws: WebSocket) {
    this.#ws = ws;
    ws.on("message", (data, isBinary) => {
      this.#messages.push(isBinary ? (data as Buffer) : (data as Buffer).toString());
      if (this.#messages.length >= MAX_WAITING) ws.pause();
      this.#wake?.();
    });
    // A close event follows.
    ws.on("error", () => {});
    this.closed = new Promise((resolve) => {
      ws.once("close", (code, reason) => {
        this.#isOver = true;
        this.#wake?.();
        resolve({ code, reason: reason.toString() });
      });
    });
  }

  send(message: SocketMessage): void {
    if (this.#ws.readyState === this.#ws.OPEN)
      this.#ws.send(message, { binary: typeof message !== "string" });
  }

  close(code = 1000, reason = ""): void {
    // The close frame of the other side must be read.
    if (this.#ws.isPaused) this.#ws.resume();
    this.#ws.close(code, reason);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SocketMessage> {
    for (;;) {
      const next = this.#messages.shift();
      if (next !== undefined) {
        if (this.#ws.isPaused && this.#messages.length === 0) this.#ws.resume();
        yield next;
      } else if (this.#isOver) return;
      else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
      }
    }
  }
}
