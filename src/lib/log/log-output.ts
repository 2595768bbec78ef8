// Writes log lines to a file descriptor without affecting the gateway. A terminal may be closed, a
// disk full, a reader slow. A line that cannot be written is lost. No method throws, and none
// blocks for more than 1 s.
import { write, writeSync } from "node:fs";

/** Maximum number of queued characters. Further lines are dropped. */
const MAX_QUEUED_CHARS = 4 << 20;
/** How often a synchronous write that would block is retried, every `RETRY_MS` milliseconds. */
const MAX_RETRIES = 100;
const RETRY_MS = 10;

const wouldBlock = ({ code }: NodeJS.ErrnoException): boolean =>
  code === "EAGAIN" || code === "EBUSY";

export class LogOutput {
  readonly #fd: number;
  readonly #sync: boolean;
  #queue: string[] = [];
  #length = 0;
  #writing = false;

  /**
   * `sync`: each line is written before `write` returns. Otherwise, lines are written in the
   * background, in order.
   */
  constructor(fd: number, { sync }: { readonly sync: boolean }) {
    this.#fd = fd;
    this.#sync = sync;
    process.once("exit", () => this.flush());
  }

  write(line: string): void {
    if (this.#sync) return this.#writeSync(line);
    if (this.#length + line.length > MAX_QUEUED_CHARS) return;
    this.#queue.push(line);
    this.#length += line.length;
    if (!this.#writing) this.#next();
  }

  /** Writes the queued lines synchronously. They are lost if that fails. */
  flush(): void {
    const text = this.#take();
    if (text !== "") this.#writeSync(text);
  }

  #take(): string {
    const text = this.#queue.join("");
    this.#queue = [];
    this.#length = 0;
    return text;
  }

  #next(): void {
    const text = this.#take();
    this.#writing = text !== "";
    if (this.#writing) this.#send(Buffer.from(text));
  }

  #send(bytes: Buffer): void {
    write(this.#fd, bytes, (error, written) => {
      if (error && wouldBlock(error)) setTimeout(() => this.#send(bytes), RETRY_MS);
      else if (error || written >= bytes.length) this.#next();
      else this.#send(bytes.subarray(written));
    });
  }

  #writeSync(text: string): void {
    let bytes = Buffer.from(text);
    for (let tries = 0; bytes.length > 0 && tries < MAX_RETRIES;)
      try {
        bytes = bytes.subarray(writeSync(this.#fd, bytes));
      } catch (error) {
        if (!wouldBlock(error as NodeJS.ErrnoException)) return;
        tries++;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
  }
}
