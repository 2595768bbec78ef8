// Orders the requests of one WebSocket. Requests of one lane run one after the other. Several lanes
// run at the same time, up to a limit. Above the limit, requests start in the order in which they
// arrived.
import { BOUNDS } from "../../lib/bounds.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { SocketRequest } from "../../plugin/socket.ts";

export class RequestLanes {
  /** Names of all lanes that the connection has used. The unnamed lane does not count. */
  readonly #names = new Set<string>();
  readonly #busy = new Set<string | undefined>();
  readonly #waiting: SocketRequest[] = [];
  readonly #run: (request: SocketRequest) => Promise<void>;
  #waitingBytes = 0;

  /** @param run Runs a request. It never rejects. */
  constructor(run: (request: SocketRequest) => Promise<void>) {
    this.#run = run;
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
    this.#waiting.push(request);
    this.#waitingBytes += request.body.length;
    this.#startNext();
  }

  /** Drops all waiting requests. */
  clear(): void {
    this.#waiting.length = this.#waitingBytes = 0;
  }

  #startNext(): void {
    while (this.#busy.size < BOUNDS.socketRunning.max) {
      const at = this.#waiting.findIndex(({ lane }) => !this.#busy.has(lane));
      if (at < 0) return;
      const [request] = this.#waiting.splice(at, 1);
      this.#waitingBytes -= request!.body.length;
      this.#busy.add(request!.lane);
      void this.#run(request!).then(() => {
        this.#busy.delete(request!.lane);
        this.#startNext();
      });
    }
  }
}
