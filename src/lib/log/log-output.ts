// Writes log lines to a file descriptor without affecting the gateway. The terminal may be closed,
// the disk full, or the reader slow. A line that cannot be written is lost. No method throws, and
// none blocks for more than 1 s.
import { write, writeSync } from "node:fs";
import { BatchLoop } from "../queue/batch-loop.ts";
import { BoundedQueue } from "../queue/bounded-queue.ts";

/** Maximum number of queued characters. Lines above this limit are dropped. */
const MAX_QUEUED_CHARS = 4 << 20;
/** Number of retries of a synchronous write that would block, one every `RETRY_MS` milliseconds. */
const MAX_RETRIES = 100;
const RETRY_MS = 10;

const wouldBlock = ({ code }: NodeJS.ErrnoException): boolean =>
  code === "EAGAIN" || code === "EBUSY";

export class LogOutput {
  readonly #fd: number;
  readonly #sync: boolean;
  readonly #queue = new BoundedQueue<string>({
    maxBytes: MAX_QUEUED_CHARS,
    sizeOf: (line) => line.length,
  });
  /**
   * Writes a line immediately if no write is in progress, because the next line may be much later.
   */
  readonly #loop = new BatchLoop({
    pending: () => this.#queue.length,
    step: () => this.#send(Buffer.from(this.#take())),
  });

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
    this.#queue.push(line);
    this.#loop.wake();
  }

  /** Writes the queued lines synchronously. If writing fails, the lines are lost. */
  flush(): void {
    const text = this.#take();
    if (text !== "") this.#writeSync(text);
  }

  #take(): string {
    return this.#queue.take().join("");
  }

  #send(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      const send = (rest: Buffer): void =>
        write(this.#fd, rest, (error, written) => {
          if (error && wouldBlock(error)) setTimeout(() => send(rest), RETRY_MS);
          else if (error || written >= rest.length) resolve();
          else send(rest.subarray(written));
        });
      send(bytes);
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
