import type { Json } from "../../model/values.ts";
import type { RouteResponse, HandlerRoute } from "../../plugin/frontend.ts";
import { yieldForLargeBody } from "../../lib/yield.ts";
import { createZdrHeaders } from "../privacy/zero-retention.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import {
  readBody,
  readChunks,
  readParts,
  prepareToReadBody,
  isBodiless,
  NO_BYTES,
  NO_BODY,
  parseBody,
} from "../body/read-body.ts";
import { fail } from "../../model/error.ts";
import { settleOpenCalls } from "../open-call.ts";
import type { ConnectionState } from "../exchange/exchange-state.ts";

/** The connection that receives a response. */
export type ClientConnection = Pick<
  ConnectionState,
  "res" | "isDisconnected" | "disconnectListeners" | "bytesOut"
>;

/** Serves a route whose frontend answers requests itself. */
export async function serve(
  x: HostExchange,
  route: HandlerRoute,
  admit: (x: HostExchange) => void | Promise<void>,
): Promise<void> {
  const admitting = route.allowUnauthenticated ? undefined : admit(x);
  if (admitting) await admitting;
  try {
    return await sendAnswer(x, await callServeRoute(x, route));
  } finally {
    const settling = settleOpenCalls(x);
    if (settling) await settling;
  }
}

/** Sends a response that a frontend made itself. */
export async function sendAnswer(
  x: HostExchange,
  { status, headers, body }: RouteResponse,
  connection: ClientConnection = x.state.connection,
): Promise<void> {
  if (isStreamBody(body)) {
    const head = createServedHeaders(x, headers, "application/octet-stream");
    const stream = new ServedStream(x, body, connection);
    return stream.run(() => connection.res.writeHead(status, head));
  }
  const bytes = encodeBody(body);
  const head = createServedHeaders(x, headers, bytes && "application/json");
  if (bytes) head["content-length"] ??= String(bytes.length);
  connection.res.writeHead(status, head);
  connection.bytesOut += bytes?.length ?? 0;
  connection.res.end(x.method === "HEAD" ? undefined : bytes);
  return undefined;
}

async function callServeRoute(x: HostExchange, route: HandlerRoute): Promise<RouteResponse> {
  // A promise is awaited, because returning it takes two more turns of the microtask queue.
  if (route.body === undefined) return await route.handle(x);
  const bodiless = isBodiless(x.method);
  prepareToReadBody(x, bodiless ? "none" : route.body);
  if (route.body === "parts") return await route.handle(x, readParts(x));
  if (route.body === "stream") return await route.handle(x, readChunks(x));
  const raw = bodiless ? NO_BYTES : await readBody(x);
  if (route.body === "bytes") return await route.handle(x, raw);
  const { gen, connection } = x.state;
  const parsed = bodiless
    ? NO_BODY
    : await parseBody(raw, connection.req.headers["content-type"]!, gen.maxJsonValues);
  const pause = yieldForLargeBody(raw.length);
  if (pause) await pause;
  return await route.handle(x, parsed.body);
}

const isStreamBody = (body: RouteResponse["body"]): body is AsyncIterable<string | Uint8Array> =>
  typeof body === "object" && body !== null && Symbol.asyncIterator in body;

const encodeBody = (body: Json | Buffer | undefined): Buffer | undefined =>
  body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));

/**
 * Creates the response headers. The frontend's headers override the host's, and hooks' headers
 * override both.
 */
function createServedHeaders(
  x: HostExchange,
  frontendHeaders: RouteResponse["headers"],
  type: string | undefined,
): Record<string, string> {
  const { gen, outcome } = x.state;
  const headers: Record<string, string> = {
    "x-request-id": x.id,
    "x-tollgate-generation": String(gen.number),
    ...createZdrHeaders(x),
    ...(type !== undefined && { "content-type": type }),
  };
  for (const [name, value] of Object.entries(frontendHeaders ?? {}))
    if (value !== undefined) headers[name.toLowerCase()] = value;
  if (outcome.headers) for (const [name, value] of outcome.headers) headers[name] = value;
  return headers;
}

// Streams a response that a frontend serves itself. Data is written at the client's pace and stops
// when the client disconnects. A truncated response never looks complete.
type Chunk = string | Uint8Array;

class ServedStream {
  readonly #x: HostExchange;
  readonly #connection: ClientConnection;
  readonly #chunks: AsyncIterator<Chunk>;
  /**
   * Ends the current wait when the client disconnects. Racing promises would keep one promise in
   * memory for each chunk.
   */
  #wake: (() => void) | undefined;
  #hasSentHeaders = false;
  #isDone = false;

  constructor(x: HostExchange, body: AsyncIterable<Chunk>, connection: ClientConnection) {
    this.#x = x;
    this.#chunks = body[Symbol.asyncIterator]();
    this.#connection = connection;
    this.#connection.disconnectListeners.push(() => this.#wake?.());
  }

  /**
   * Writes the response. `writeHeaders` writes the headers. A first chunk that is available
   * immediately is sent with the headers. If the source fails immediately, the client still
   * receives an error response.
   */
  async run(writeHeaders: () => void): Promise<void> {
    const { res } = this.#connection;
    const open = () => {
      if (this.#hasSentHeaders || res.destroyed) return;
      this.#hasSentHeaders = true;
      writeHeaders();
      res.flushHeaders();
    };
    const openTimer = setImmediate(open);
    try {
      while (this.#x.method !== "HEAD") {
        const next = await this.#next();
        if (!next) fail("canceled", "The client disconnected.");
        else if ((this.#isDone = next.done === true)) break;
        else await this.#write(next.value, open);
      }
      open();
      res.end();
    } finally {
      clearImmediate(openTimer);
      this.#close();
    }
  }

  /** Resolves to undefined if the client has disconnected. */
  #next(): Promise<IteratorResult<Chunk> | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#connection.isDisconnected) return resolve(undefined);
      this.#wake = () => resolve(undefined);
      this.#chunks.next().then(resolve, reject);
    });
  }

  /**
   * Writes a chunk. Returns a promise that resolves when the client can receive more data, or
   * undefined if it can receive more now.
   */
  #write(piece: Chunk, open: () => void): Promise<void> | undefined {
    const { res } = this.#connection;
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    // An empty chunk would end a response in chunked encoding.
    if (bytes.length === 0) return undefined;
    open();
    this.#connection.bytesOut += bytes.length;
    if (this.#connection.isDisconnected || res.write(bytes)) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
      res.once("drain", resolve);
    });
  }

  /** Closes the source, which may still be producing data. Its errors are only logged. */
  #close(): void {
    this.#wake = undefined;
    if (this.#isDone) return;
    const { gen } = this.#x.state;
    const failed = (err: unknown) =>
      gen.log.error({ request: this.#x.id, err }, "closing served response failed");
    try {
      this.#chunks.return?.()?.then(undefined, failed);
    } catch (err) {
      failed(err);
    }
  }
}
