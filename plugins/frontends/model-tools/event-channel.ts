// The stream of events that a client receives while turns and tools run.
import {
  BoundedQueue,
  getFault,
  type Context,
  type Fault,
  type JsonObject,
  type RouteResponse,
} from "tollgate/plugin";
import type { ToolLoop } from "./tool-loop.ts";

/** Time between two comments that keep a silent stream open, in milliseconds. */
const KEEP_ALIVE_MS = 15_000;
const MAX_QUEUED = 64;

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

export class EventChannel {
  readonly #queue = new BoundedQueue<string>({ maxItems: MAX_QUEUED, overflow: "wait" });
  #onEvent: (() => void) | undefined;
  /** Senders that wait until the queue has room. Several tools may send events at the same time. */
  readonly #waiting = new Set<() => void>();
  readonly #signal: AbortSignal;
  #isOpen = true;

  /** Once `signal` is aborted, no sender waits for the client. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wakeAll(), { once: true });
  }

  /** Sends an event. Resolves when the next one may be sent. */
  async send(event: string): Promise<void> {
    if (!this.#isOpen) return;
    this.#queue.push(event);
    this.#onEvent?.();
    while (this.#queue.isFull && this.#isOpen && !this.#signal.aborted)
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #wakeAll(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /**
   * Returns the response of the events that `run` sends. Rejects with its error if it fails before
   * its first event. `cancel` is called if the client disconnects.
   */
  async respond(run: () => Promise<void>, cancel: () => void): Promise<RouteResponse> {
    let isDone = false;
    const running = run().finally(() => {
      isDone = true;
      this.#onEvent?.();
    });
    running.catch(() => undefined);
    await Promise.race([running, new Promise<void>((resolve) => (this.#onEvent = resolve))]);
    if (this.#queue.length === 0 && isDone) await running;
    const events = this.#stream(running, () => isDone, cancel);
    return { status: 200, headers: STREAM_HEADERS, body: events };
  }

  async *#stream(
    running: Promise<void>,
    isDone: () => boolean,
    cancel: () => void,
  ): AsyncGenerator<string> {
    try {
      while (true) {
        const events = this.#queue.take(MAX_QUEUED);
        if (events.length > 0) {
          this.#wakeAll();
          yield events.join("");
        } else if (isDone()) break;
        else if (!(await this.#waitForEvent())) yield ": keep-alive\n\n";
      }
      await running;
    } finally {
      this.#isOpen = false;
      this.#wakeAll();
      cancel();
    }
  }

  /** Resolves to false if no event was sent for the time of a keep-alive. */
  #waitForEvent(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), KEEP_ALIVE_MS);
      this.#onEvent = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}

/** Turns whose events a client receives. */
export interface StreamedTurns {
  run(): Promise<void>;
  /** Sends the event of a failure, after other events have been sent. */
  fail(fault: Fault): Promise<void>;
}

/** Runs turns, and returns the response of their events. Rejects if they fail before the first one. */
export function streamTurns(
  { log }: Pick<Context, "log">,
  loop: ToolLoop,
  createTurns: (send: (events: readonly JsonObject[]) => Promise<void>) => StreamedTurns,
): Promise<RouteResponse> {
  const { x, signal } = loop;
  const channel = new EventChannel(signal);
  let hasSent = false;
  const turns = createTurns((events) => {
    hasSent = true;
    return channel.send(events.map(toText).join(""));
  });
  const run = async () => {
    try {
      await turns.run();
    } catch (problem) {
      if (!hasSent || x.signal.aborted) throw problem;
      const fault = getFault(problem);
      if (fault && fault.kind !== "internal") return turns.fail(fault);
      log.error({ request: x.id, err: problem }, "model turn failed");
      return turns.fail({ kind: "upstream", message: "Internal error." });
    }
  };
  return channel.respond(run, () => loop.cancel());
}

const toText = (event: JsonObject): string =>
  `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;
