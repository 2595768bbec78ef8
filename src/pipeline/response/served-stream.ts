// A served answer that comes piece by piece: at the client's pace, ended when the client leaves, and never half of one that
// looks whole.
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange/exchange.ts";

type Chunk = string | Uint8Array;

export class ServedStream {
  readonly #x: HostExchange;
  readonly #chunks: AsyncIterator<Chunk>;
  /** Ends what is waited for when the client leaves. A race of promises would keep one for each piece. */
  #wake: (() => void) | undefined;
  #hasSentHeaders = false;
  #isDone = false;

  constructor(x: HostExchange, body: AsyncIterable<Chunk>) {
    this.#x = x;
    this.#chunks = body[Symbol.asyncIterator]();
    x["~"].disconnectListeners.push(() => this.#wake?.());
  }

  /** `head` writes it. A first piece that is there at once leaves with it; a first failure at once is still said in words. */
  async run(writeHeaders: () => void): Promise<void> {
    const { res } = this.#x["~"];
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
        if (!next) fail("canceled", "The client went away.");
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

  /** Nothing: the client has gone. */
  #next(): Promise<IteratorResult<Chunk> | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#x["~"].isDisconnected) return resolve(undefined);
      this.#wake = () => resolve(undefined);
      this.#chunks.next().then(resolve, reject);
    });
  }

  /** Resolves when there is room for more. */
  #write(piece: Chunk, open: () => void): Promise<void> | undefined {
    const state = this.#x["~"];
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    // An empty piece would be the end of an answer in chunks.
    if (bytes.length === 0) return undefined;
    open();
    state.bytesOut += bytes.length;
    if (state.isDisconnected || state.res.write(bytes)) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
      state.res.once("drain", resolve);
    });
  }

  /** It may stand in the middle of something; what it says to its end is for the log alone. */
  #close(): void {
    this.#wake = undefined;
    if (this.#isDone) return;
    const { gen } = this.#x["~"];
    const failed = (err: unknown) =>
      gen.log.error({ request: this.#x.id, err }, "a served answer did not end well");
    try {
      this.#chunks.return?.()?.then(undefined, failed);
    } catch (err) {
      failed(err);
    }
  }
}
