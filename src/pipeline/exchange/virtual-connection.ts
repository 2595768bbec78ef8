// Simulates the connection of a request that did not arrive over HTTP: a subrequest of a plugin, or
// a message of a WebSocket. The request uses the ordinary pipeline.
import { Readable, Writable } from "node:stream";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface VirtualRequest {
  readonly path: string;
  /** Headers of the request. `content-type` and `content-length` are added. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** JSON text of the body, which is already present. */
  readonly body: Buffer;
  /** Connection of the client. */
  readonly socket: Socket;
}

/** Creates a POST request with a JSON body. */
export function createVirtualRequest(of: VirtualRequest): IncomingMessage {
  const headers = {
    ...of.headers,
    "content-type": "application/json",
    "content-length": String(of.body.length),
  };
  // `Readable.from` would keep the request in memory: see `VirtualResponse`.
  const content = new Readable({ read() {} });
  content.push(of.body);
  content.push(null);
  return Object.assign(content, {
    method: "POST",
    url: of.path,
    headers,
    rawHeaders: Object.entries(headers).flat(),
    httpVersion: "1.1",
    complete: true,
    socket: of.socket,
  }) as unknown as IncomingMessage;
}

/**
 * The part of `ServerResponse` that the pipeline uses. If a function is assigned to a member of an
 * object, V8 allocates the function in the old generation. Node assigns one to each `Writable`, which
 * keeps the stream until the next full collection. A closed stream therefore drops its references to
 * the request.
 */
export abstract class VirtualResponse extends Writable {
  statusCode = 200;
  headersSent = false;

  constructor() {
    super();
    this.once("close", () => process.nextTick(() => this.removeAllListeners()));
  }

  /** Called with each chunk. `done` is called when the next request may follow. */
  abstract override _write(chunk: Buffer, encoding: string, done: (error?: Error) => void): void;

  /** Called once, with the headers in lower case. */
  protected onHead(_headers: ReadonlyMap<string, string>): void {}

  writeHead(status: number, headers: readonly string[] | Readonly<Record<string, unknown>>): this {
    this.statusCode = status;
    this.headersSent = true;
    const map = new Map<string, string>();
    if (Array.isArray(headers))
      for (let i = 0; i < headers.length; i += 2)
        map.set(String(headers[i]).toLowerCase(), String(headers[i + 1]));
    else
      for (const [name, value] of Object.entries(headers ?? {}))
        if (value !== undefined) map.set(name.toLowerCase(), String(value));
    this.onHead(map);
    return this;
  }
  flushHeaders(): void {}
  writeContinue(): void {}

  /** The response as the pipeline takes it. */
  get asServerResponse(): ServerResponse {
    return this as unknown as ServerResponse;
  }
}
