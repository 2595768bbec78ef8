// The response to one request of a client: JSON, or a stream of events if messages precede the
// result or the result takes long.
import type { JsonObject, Opt, RouteResponse } from "tollgate/plugin";
import type { RpcId } from "./json-rpc.ts";

/** Time after which a stream is opened although no message has arrived, in milliseconds. */
const STREAM_AFTER_MS = 10_000;
/** Time between two comments that keep a stream open, in milliseconds. */
const KEEP_ALIVE_MS = 15_000;
const KEEP_ALIVE = ": keep-alive\n\n";
/** Largest number of messages that wait for a slow client. Further notifications are dropped. */
const MAX_QUEUED = 1_000;

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Result of a request, or the error in its place. */
export interface FinalMessage {
  readonly body: JsonObject;
  /** Status if the response is JSON. */
  readonly status: number;
  readonly headers?: Opt<Readonly<Record<string, string>>>;
}

export class ClientReply {
  /** Whether the client accepts a stream. */
  readonly canStream: boolean;
  /** Name of the tool or prompt that the request uses, at its server. For observers. */
  target: string | undefined;
  readonly #controller = new AbortController();
  readonly #queue: string[] = [];
  #wake: (() => void) | undefined;

  constructor(of: { readonly canStream: boolean; readonly signal: AbortSignal }) {
    this.canStream = of.canStream;
    if (of.signal.aborted) this.cancel();
    else of.signal.addEventListener("abort", () => this.cancel(), { once: true });
  }

  /** Aborts when the client has canceled the request or has disconnected. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  cancel(): void {
    this.#controller.abort();
    this.#wake?.();
  }

  /** Sends a notification before the result. */
  notify(method: string, params: JsonObject): void {
    if (this.#queue.length < MAX_QUEUED) this.#push({ jsonrpc: "2.0", method, params });
  }

  /** Sends a request before the result. */
  request(id: RpcId, method: string, params: JsonObject): void {
    this.#push({ jsonrpc: "2.0", id, method, params });
  }

  /** Returns the response. `run` returns the final message and never rejects. */
  async respond(run: () => Promise<FinalMessage>): Promise<RouteResponse> {
    const running = run();
    if (this.canStream) {
      const isFirst = await this.#raceWithMessages(running);
      if (!isFirst) return { status: 200, headers: STREAM_HEADERS, body: this.#stream(running) };
    }
    const { status, body, headers } = await running;
    return { status, headers: { "cache-control": "no-store", ...headers }, body };
  }

  /** Returns a stream that ends when `run` has ended. */
  stream(run: () => Promise<FinalMessage | undefined>): RouteResponse {
    return { status: 200, headers: STREAM_HEADERS, body: this.#stream(run()) };
  }

  #push(message: JsonObject): void {
    this.#queue.push(toEvent(message));
    this.#wake?.();
  }

  /** Whether the result arrived before any message and before the stream has to be opened. */
  async #raceWithMessages(running: Promise<unknown>): Promise<boolean> {
    if (this.#queue.length > 0) return false;
    let timer: NodeJS.Timeout | undefined;
    const message = new Promise<false>((resolve) => {
      this.#wake = () => resolve(false);
      timer = setTimeout(() => resolve(false), STREAM_AFTER_MS);
    });
    try {
      return await Promise.race([running.then(() => true as const), message]);
    } finally {
      clearTimeout(timer);
      this.#wake = undefined;
    }
  }

  async *#stream(running: Promise<FinalMessage | undefined>): AsyncGenerator<string> {
    let final: FinalMessage | undefined;
    let isDone = false;
    void running.then((message) => {
      final = message;
      isDone = true;
      this.#wake?.();
    });
    try {
      while (true) {
        while (this.#queue.length > 0) yield this.#queue.shift()!;
        if (isDone) break;
        if (this.#controller.signal.aborted) {
          // A canceled call is settled before its request ends.
          await running;
          return;
        }
        if (!(await this.#waitForMessage())) yield KEEP_ALIVE;
      }
      if (final) yield toEvent(final.body);
    } finally {
      this.cancel();
    }
  }

  /** Resolves to false if nothing happened for the time of a keep-alive. */
  #waitForMessage(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), KEEP_ALIVE_MS);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve(true);
      };
    });
  }
}

const toEvent = (message: JsonObject): string =>
  `event: message\ndata: ${JSON.stringify(message)}\n\n`;
