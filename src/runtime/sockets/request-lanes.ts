// Orders the requests of one WebSocket. Requests of one lane run one after the other. Several lanes
// run at the same time, up to a limit. Above the limit, requests start in the order in which they
// arrived.
import { BOUNDS } from "../../lib/bounds.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { SocketRequest } from "../../plugin/socket.ts";

/** Memory for the requests that wait. `held` is the number of bytes that they hold already. */
export interface LaneMemory {
  tryReserve(bytes: number, held: number): boolean;
  release(held: number, left: number): void;
}

const RETRY_AFTER_MS = 1_000;

export class RequestLanes {
  /** Names of all lanes that the connection has used. The unnamed lane does not count. */
  readonly #names = new Set<string>();
  readonly #busy = new Set<string | undefined>();
  readonly #waiting: SocketRequest[] = [];
  readonly #run: (request: SocketRequest) => Promise<void>;
  readonly #memory: LaneMemory;
  #waitingBytes = 0;

  /** @param run Runs a request. It never rejects. */
  constructor(run: (request: SocketRequest) => Promise<void>, memory: LaneMemory) {
    this.#run = run;
    this.#memory = memory;
  }

  get isBusy(): boolean {
    return this.#busy.size > 0 || this.#waiting.length > 0;
  }

  /** Number of requests that run. */
  get running(): number {
    return this.#busy.size;
  }

  /** Bytes of the requests that wait. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Adds a request. Throws if a bound is exceeded. */
  add(request: SocketRequest): void {
    const { lane } = request;
    if (lane !== undefined && !this.#names.has(lane)) {
      if (this.#names.size >= BOUNDS.socketLanes.max)
        failBoundExceeded("socketLanes", undefined, { param: "stream_id" });
      this.#names.add(lane);
    }
    if (this.#waiting.length >= BOUNDS.socketQueue.max) failBoundExceeded("socketQueue");
    const bytes = request.body.length;
    if (!this.#memory.tryReserve(bytes, this.#waitingBytes))
      failBoundExceeded("inFlight", undefined, { retryAfterMs: RETRY_AFTER_MS });
    this.#waiting.push(request);
    this.#waitingBytes += bytes;
    this.#startNext();
  }

  /** Drops all waiting requests. */
  clear(): void {
    this.#waiting.length = 0;
    this.#keep(0);
  }

  #keep(bytes: number): void {
    this.#memory.release(this.#waitingBytes, bytes);
    this.#waitingBytes = bytes;
  }

  #startNext(): void {
    while (this.#busy.size < BOUNDS.socketRunning.max) {
      const at = this.#waiting.findIndex(({ lane }) => !this.#busy.has(lane));
      if (at < 0) return;
      const [request] = this.#waiting.splice(at, 1);
      // The request reserves its own memory when it runs.
      this.#keep(this.#waitingBytes - request!.body.length);
      this.#busy.add(request!.lane);
      void this.#run(request!).then(() => {
        this.#busy.delete(request!.lane);
        this.#startNext();
      });
    }
  }
}
