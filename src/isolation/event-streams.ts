// Response events for isolated plugins. Events are sent to the plugin in batches. For an `event`
// hook, the plugin returns the events to forward.
import { ProbingMap } from "../lib/probing-map.ts";
import { BatchLoop } from "../lib/queue/batch-loop.ts";
import { ERRORS, getFault, type Fault } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import type { Call } from "../plugin/call.ts";
import { PluginFailure, type PluginConnection } from "./plugin-connection.ts";
import { serializeCall } from "./serialization.ts";

/** Source of the plugin's current connection. */
export interface ConnectionSource {
  /**
   * Returns the connection, or a promise while a new connection is being made. Rejects if there is
   * no connection.
   */
  connection(): PluginConnection | Promise<PluginConnection>;
}
type ExchangeParamsOf = (link: PluginConnection, x: Call["exchange"]) => object;
type StopStream = (fault: Fault) => void;
type PassEvent = (event: ModelEvent) => void;

/**
 * Time in milliseconds for which events are collected, so that a hundred of them form one frame.
 */
const BATCH_MS = 16;
const MAX_BATCH = 256;

/** Streams that are open, by number. */
export class EventStreams {
  readonly #open = new ProbingMap<EventStream>();
  #lastId = 0;

  transform(
    of: ConnectionSource,
    call: Call,
    next: PassEvent,
    stop: StopStream,
    about: ExchangeParamsOf,
  ) {
    return this.#start(of, "event", call, stop, about, next);
  }

  observe(of: ConnectionSource, call: Call, stop: StopStream, about: ExchangeParamsOf) {
    return this.#start(of, "watch", call, stop, about, undefined);
  }

  /**
   * Handles a notification about a stream. A notification about a stream that has ended is ignored,
   * because the plugin may not have been notified yet.
   */
  onNotify(name: string, given: unknown): void {
    const { stream: n, events, fault } = given as Record<string, unknown>;
    const stream = this.#open.get(String(n));
    if (!stream) return;
    if (name === "stream_stop") stream.onStop(fault);
    else if (Array.isArray(events)) stream.emit(events as readonly ModelEvent[]);
    else throw new Error("no events");
  }

  /** The plugin has ended or cannot be reached. Streams that pass through it are stopped. */
  failAll(): void {
    for (const stream of this.#open.values()) stream.fail();
  }

  #start(
    of: ConnectionSource,
    hook: "event" | "watch",
    call: Call,
    stop: StopStream,
    about: ExchangeParamsOf,
    next: PassEvent | undefined,
  ): (event: ModelEvent) => undefined {
    const n = ++this.#lastId;
    const stream = new EventStream(n, stop, next, () => this.#open.remove(String(n)));
    this.#open.set(String(n), stream);
    call.signal.addEventListener("abort", () => stream.end(), { once: true });
    const begun = (link: PluginConnection) => stream.start(link, { stream: n, hook, call, about });
    const link = of.connection();
    if ("then" in link) void link.then(begun, () => stream.fail());
    else begun(link);
    return (event) => stream.push(event);
  }
}

class EventStream {
  readonly #id: number;
  readonly #stop: StopStream;
  readonly #next: PassEvent | undefined;
  readonly #unregister: () => void;
  #link: PluginConnection | undefined;
  /** Events are kept in this list until the plugin is connected and the loop sends them. */
  #buffered: ModelEvent[] = [];
  readonly #loop = new BatchLoop(
    { pending: () => (this.#link ? this.#buffered.length : 0), step: () => this.#send() },
    { delayMs: BATCH_MS, fullAt: MAX_BATCH },
  );
  #ended = false;
  #failed: PluginFailure | undefined;

  constructor(n: number, stop: StopStream, next: PassEvent | undefined, forget: () => void) {
    this.#id = n;
    this.#stop = stop;
    this.#next = next;
    this.#unregister = forget;
  }

  start(
    connection: PluginConnection,
    of: { stream: number; hook: "event" | "watch"; call: Call; about: ExchangeParamsOf },
  ): void {
    if (this.#ended) return;
    this.#link = connection;
    connection.openStreams++;
    const { stream, hook, call, about } = of;
    connection.notify("stream_start", {
      stream,
      hook,
      ...about(connection, call.exchange),
      call: serializeCall(call),
    });
    void this.#loop.drain();
  }

  push(event: ModelEvent): undefined {
    if (this.#failed) throw this.#failed;
    if (this.#ended) return undefined;
    this.#buffered.push(event);
    // The last event is sent immediately, because the client waits for it.
    if (event.type === "finish") void this.#loop.drain();
    else this.#loop.wake();
    return undefined;
  }

  emit(events: readonly ModelEvent[]): void {
    for (const event of events) {
      if (this.#ended) return;
      try {
        this.#next?.(event);
      } catch (problem) {
        const { kind, message } = getFault(problem) ?? PLUGIN_LOST;
        return this.#stopWith({ kind, message });
      }
      if (event?.type === "finish") this.end();
    }
  }

  onStop(raw: unknown): void {
    const { kind, message, code } = (raw ?? {}) as Record<string, unknown>;
    const whole =
      typeof kind === "string" && Object.hasOwn(ERRORS, kind) && typeof message === "string";
    this.#stopWith(
      whole
        ? { kind: kind as Fault["kind"], message, ...(typeof code === "string" && { code }) }
        : PLUGIN_LOST,
    );
  }

  /**
   * Fails the stream. If the stream is only observed, the error is thrown at the next event, and
   * the operator may have configured to ignore it.
   */
  fail(): void {
    if (this.#next) return this.#stopWith(PLUGIN_LOST);
    if (!this.#ended) this.#failed = new PluginFailure(PLUGIN_LOST.message);
    this.end();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#loop.stop();
    this.#buffered = [];
    this.#unregister();
    if (!this.#link) return;
    this.#link.openStreams--;
    this.#link.notify("stream_end", { stream: this.#id });
  }

  #stopWith(why: Fault): void {
    if (this.#ended) return;
    this.end();
    this.#stop(why);
  }

  #send(): void {
    const events = this.#buffered;
    this.#buffered = [];
    this.#link!.notify("events", { stream: this.#id, events });
    // An observed stream ends with its last event.
    if (!this.#next && events.at(-1)!.type === "finish") this.end();
  }
}

const PLUGIN_LOST = {
  kind: "unavailable",
  message: "An isolated plugin that processes this response has exited.",
  code: "plugin_failed",
} satisfies Fault;
