// A served answer that comes piece by piece: at the client's pace, ended when the client leaves, and never half of one that
// looks whole.
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange.ts";

type Piece = string | Uint8Array;

export class ServedStream {
  readonly #x: HostExchange;
  readonly #pieces: AsyncIterator<Piece>;
  /** Ends what is waited for when the client leaves. A race of promises would keep one for each piece. */
  #wake: (() => void) | undefined;
  #opened = false;
  #done = false;

  constructor(x: HostExchange, body: AsyncIterable<Piece>) {
    this.#x = x;
    this.#pieces = body[Symbol.asyncIterator]();
    x["~"].onGone.push(() => this.#wake?.());
  }

  /** `head` writes it. A first piece that is there at once leaves with it; a first failure at once is still said in words. */
  async run(head: () => void): Promise<void> {
    const { res } = this.#x["~"];
    const open = () => {
      if (this.#opened || res.destroyed) return;
      this.#opened = true;
      head();
      res.flushHeaders();
    };
    const soon = setImmediate(open);
    try {
      while (this.#x.method !== "HEAD") {
        const next = await this.#next();
        if (!next) fail("canceled", "The client went away.");
        else if ((this.#done = next.done === true)) break;
        else await this.#write(next.value, open);
      }
      open();
      res.end();
    } finally {
      clearImmediate(soon);
      this.#leave();
    }
  }

  /** Nothing: the client has gone. */
  #next(): Promise<IteratorResult<Piece> | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#x["~"].gone) return resolve(undefined);
      this.#wake = () => resolve(undefined);
      this.#pieces.next().then(resolve, reject);
    });
  }

  /** Resolves when there is room for more. */
  #write(piece: Piece, open: () => void): Promise<void> | undefined {
    const inner = this.#x["~"];
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    // An empty piece would be the end of an answer in chunks.
    if (bytes.length === 0) return undefined;
    open();
    inner.bytesOut += bytes.length;
    if (inner.gone || inner.res.write(bytes)) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
      inner.res.once("drain", resolve);
    });
  }

  /** It may stand in the middle of something; what it says to its end is for the log alone. */
  #leave(): void {
    this.#wake = undefined;
    if (this.#done) return;
    const { gen } = this.#x["~"];
    const failed = (err: unknown) =>
      gen.log.error({ request: this.#x.id, err }, "a served answer did not end well");
    try {
      this.#pieces.return?.()?.then(undefined, failed);
    } catch (err) {
      failed(err);
    }
  }
}
