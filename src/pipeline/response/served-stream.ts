// Streams a response that a frontend serves itself. It follows the client's pace and ends when the
// client disconnects. A truncated response never looks complete.
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { ConnectionState } from "../exchange/exchange-state.ts";

type Chunk = string | Uint8Array;

export class ServedStream {
  readonly #x: HostExchange;
  readonly #connection: ConnectionState;
  readonly #chunks: AsyncIterator<Chunk>;
  /**
   * Ends the current wait when the client disconnects. Racing promises would keep one promise in
   * memory for each chunk.
   */
  #wake: (() => void) | undefined;
  #hasSentHeaders = false;
  #isDone = false;

  constructor(x: HostExchange, body: AsyncIterable<Chunk>) {
    this.#x = x;
    this.#chunks = body[Symbol.asyncIterator]();
    this.#connection = x.state.connection;
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
   * Writes a chunk. Returns a promise that resolves when there is room for more, or undefined if
   * there is room now.
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

  /** Closes the source, which may be in the middle of its work. Its errors are only logged. */
  #close(): void {
    this.#wake = undefined;
    if (this.#isDone) return;
    const { gen } = this.#x.state;
    const failed = (err: unknown) =>
      gen.log.error({ request: this.#x.id, err }, "ending a served response failed");
    try {
      this.#chunks.return?.()?.then(undefined, failed);
    } catch (err) {
      failed(err);
    }
  }
}
