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

const NO_STORE = { "cache-control": "no-store" } as const;

/** Result of a request, or the error in its place. */
export interface FinalMessage {
  readonly body: JsonObject;
  /** Status if the response is JSON. */
  readonly status: number;
  readonly headers?: Opt<Readonly<Record<string, string>>>;
}

interface AbortableCall {
  abort(): void;
}

export class ClientReply {
  /** Whether the client accepts a stream. */
  readonly canStream: boolean;
  /** Name of the tool or prompt that the request uses, at its server. For observers. */
  target: string | undefined;
  /** The call that the request waits for. */
  #call: AbortableCall | undefined;
  #isCanceled = false;
  #controller: AbortController | undefined;
  readonly #queue: string[] = [];
  #wake: (() => void) | undefined;

  constructor(of: { readonly canStream: boolean; readonly signal: AbortSignal }) {
    this.canStream = of.canStream;
    if (of.signal.aborted) this.cancel();
    else of.signal.addEventListener("abort", this, { once: true });
  }

  /** Called when the client disconnects. */
  handleEvent(): void {
    this.cancel();
  }

  /** Whether the client has canceled the request or has disconnected. */
  get isCanceled(): boolean {
    return this.#isCanceled;
  }

  /** Aborts when the request is canceled. Created on first use. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#isCanceled) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  cancel(): void {
    this.#isCanceled = true;
    this.#controller?.abort();
    this.#call?.abort();
    this.#wake?.();
  }

  /** Sets the call that is aborted when the request is canceled. Undefined: none. */
  setCall(call: AbortableCall | undefined): void {
    this.#call = call;
    if (this.#isCanceled) call?.abort();
  }

  /** Sends a notification before the result. */
  notify(method: string, params: JsonObject): void {
    if (this.#queue.length < MAX_QUEUED) this.#push({ jsonrpc: "2.0", method, params });
  }

  /** Sends a request before the result. */
  request(id: RpcId, method: string, params: JsonObject): void {
    this.#push({ jsonrpc: "2.0", id, method, params });
  }

  /**
   * Returns the response. `run` returns the final message and never rejects. If a message precedes
   * it, or it takes long, the response is a stream.
   */
  respond(run: () => Promise<FinalMessage>): Promise<RouteResponse> {
    const running = run();
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      let isOpen = false;
      const stop = () => {
        clearTimeout(timer);
        this.#wake = undefined;
      };
      const open = () => {
        stop();
        isOpen = true;
        resolve({ status: 200, headers: STREAM_HEADERS, body: this.#stream(running) });
      };
      if (this.canStream && this.#queue.length > 0) return open();
      if (this.canStream) {
        this.#wake = open;
        timer = setTimeout(open, STREAM_AFTER_MS);
      }
      running.then(({ status, body, headers }) => {
        if (isOpen) return;
        stop();
        resolve({ status, headers: headers ? { ...NO_STORE, ...headers } : NO_STORE, body });
      }, reject);
    });
  }

  /** Returns a stream that ends when `run` has ended. */
  stream(run: () => Promise<FinalMessage | undefined>): RouteResponse {
    return { status: 200, headers: STREAM_HEADERS, body: this.#stream(run()) };
  }

  #push(message: JsonObject): void {
    this.#queue.push(toEvent(message));
    this.#wake?.();
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
        if (this.#isCanceled) {
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
