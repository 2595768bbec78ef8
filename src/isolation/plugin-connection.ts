// A connection to an isolated plugin, which is not trusted. The connection is closed after a reply
// without a call, a second reply, an invalid frame, a frame that is too long, or silence while a
// call is open. All open calls then fail.
import type { Duplex } from "node:stream";
import { ProbingMap } from "../lib/probing-map.ts";
import { ERRORS, createFault, getFault, publicErrorText, type Fault } from "../model/error.ts";
import {
  parseFrame,
  LineReader,
  LineWriter,
  type ReplyFrame,
  type CallFrame,
  type NotifyFrame,
  serializeFrame,
} from "./frames.ts";

/**
 * Maximum size of a frame in bytes, in addition to twice the size of the open calls. It is large
 * enough for a recorded response or a model list.
 */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;
/** Maximum number of bytes that the plugin has not read yet. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** Maximum number of notifications and calls from the plugin per second. */
const MAX_FRAMES_PER_SECOND = 20_000;
/**
 * Time in milliseconds without a frame after which the plugin is pinged, and maximum time until its
 * reply.
 */
const PING_AFTER_MS = 500;
const PONG_TIMEOUT_MS = 2_000;
const TICK_MS = 250;
/** Maximum number of open calls from the plugin. */
const MAX_OPEN_CALLS = 1_000;

/** Functions that the plugin may call, by name. */
export type HostHandlers = Readonly<Record<string, (given: any) => unknown>>;

export interface ConnectionOptions {
  readonly stream: Duplex;
  /** Functions that the plugin may call at any time. */
  readonly handlers: HostHandlers;
  /** Called for each notification from the plugin. */
  readonly onNotify: (name: string, given: unknown) => void;
  /** Called once when the connection is closed, with the reason. */
  readonly onClose: (why: string) => void;
}

/** Options of one call. */
export interface CallOptions {
  /** Functions that the plugin may call while this call is open. */
  readonly handlers?: HostHandlers | undefined;
  /** Called once if the call is still open after a short time. */
  onSlow?(): void;
  /** Converts the reply synchronously. An error that it throws rejects the call. */
  parseReply?(value: unknown): unknown;
}

interface OpenCall {
  readonly options: CallOptions | undefined;
  readonly bytes: number;
  isReportedSlow: boolean;
  resolve(value: unknown): void;
  reject(problem: Error): void;
}

/** The plugin failed, as opposed to an error that it reported with `fail()`. */
export class PluginFailure extends Error {
  override name = "PluginFailure";
}

export class PluginConnection {
  readonly #options: ConnectionOptions;
  readonly #reader = new LineReader();
  readonly #writer: LineWriter;
  /** Open calls by number. */
  #open = new ProbingMap<OpenCall, number>();
  readonly #timer: NodeJS.Timeout;
  #lastCall = 0;
  #sentBytes = 0;
  #openHostCalls = 0;
  #framesInWindow = 0;
  #lastReceivedAt = performance.now();
  #pingedAt = 0;
  #tickedAt = performance.now();
  #windowStartedAt = performance.now();
  #closed = false;
  /**
   * The plugin is starting until the first frame arrives. The code that starts it has its own
   * timeout.
   */
  #hasReceived = false;
  /** Number of response streams that pass through the plugin. Unlike calls, they have no reply. */
  openStreams = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { stream } = options;
    this.#writer = new LineWriter(stream);
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    stream.on("error", () => {});
    stream.on("close", () => this.close("it disconnected"));
    stream.on("end", () => this.close("it disconnected"));
    this.#timer = setInterval(() => this.#checkHealth(), TICK_MS);
    this.#timer.unref();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  call(name: string, given: unknown, options?: CallOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new PluginFailure("The plugin is not running."));
      const call = ++this.#lastCall;
      const text = serializeFrame({ call, method: name, params: given });
      if (this.#open.size === 0) this.#lastReceivedAt = performance.now();
      this.#open.set(call, { options, bytes: text.length, isReportedSlow: false, resolve, reject });
      this.#sentBytes += text.length;
      this.#write(text);
    });
  }

  notify(name: string, given: unknown): void {
    if (!this.#closed) this.#write(serializeFrame({ notify: name, params: given }));
  }

  close(why: string): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#options.stream.destroy();
    for (const { reject } of this.#open.values())
      reject(new PluginFailure(`The plugin is not running: ${why}.`));
    this.#open = new ProbingMap();
    this.#options.onClose(why);
  }

  /** Sends a notification that is not urgent, with the next frame or a little later. */
  notifyLazily(name: string, given: unknown): void {
    if (!this.#closed) this.#writer.writeLazily(serializeFrame({ notify: name, params: given }));
  }

  #write(text: string): void {
    this.#writer.write(text);
    if (this.#writer.unreadBytes > MAX_UNREAD_BYTES) this.close("it does not read its messages");
  }

  #read(chunk: Buffer): void {
    this.#hasReceived = true;
    this.#lastReceivedAt = performance.now();
    this.#pingedAt = 0;
    const maxBytes = () => MAX_FRAME_BYTES + 2 * this.#sentBytes;
    const well = this.#reader.push(chunk, maxBytes, (line) => {
      this.#onLine(line);
      return !this.#closed;
    });
    if (!well) this.close("it sent a message that is too large");
  }

  #onLine(line: string): void {
    const frame = parseFrame(line);
    if (!frame) return this.close("it sent an invalid frame");
    if ("reply" in frame) return this.#handleReply(frame);
    const now = performance.now();
    if (now - this.#windowStartedAt > 1_000) {
      this.#windowStartedAt = now;
      this.#framesInWindow = 0;
    }
    if (++this.#framesInWindow > MAX_FRAMES_PER_SECOND)
      return this.close("it sent too many messages");
    if ("notify" in frame) return this.#handleNotify(frame);
    void this.#handleCall(frame);
  }

  #handleNotify({ notify, params: given }: NotifyFrame): void {
    if (notify === "pong") return;
    try {
      this.#options.onNotify(notify, given);
    } catch {
      this.close(`it sent an invalid notification (${notify.slice(0, 40)})`);
    }
  }

  #handleReply(frame: ReplyFrame): void {
    const open = this.#open.remove(frame.reply);
    if (!open) return this.close("it sent an unexpected or repeated response");
    this.#sentBytes -= open.bytes;
    if ("fault" in frame) return open.reject(toFault(frame.fault));
    if ("error" in frame)
      return open.reject(new PluginFailure(String(frame.error).slice(0, 2_000)));
    if (!open.options?.parseReply) return open.resolve(frame.value);
    try {
      open.resolve(open.options.parseReply(frame.value));
    } catch (problem) {
      open.reject(problem as Error);
    }
  }

  async #handleCall({ call, method, params: given, parent }: CallFrame): Promise<void> {
    if (++this.#openHostCalls > MAX_OPEN_CALLS)
      return this.close("it sent too many concurrent requests");
    const answers =
      parent === undefined ? this.#options.handlers : this.#open.get(parent)?.options?.handlers;
    let reply: ReplyFrame;
    try {
      if (!answers || !Object.hasOwn(answers, method))
        throw new Error(`${method.slice(0, 40)} is not available, or no longer available.`);
      reply = { reply: call, value: await answers[method]!(given) };
    } catch (problem) {
      const fault = getFault(problem);
      reply = fault
        ? { reply: call, fault: { ...fault, cause: undefined } }
        : { reply: call, error: publicErrorText(problem, "it failed") };
    }
    this.#openHostCalls--;
    if (!this.#closed) this.#write(serializeFrame(reply));
  }

  #checkHealth(): void {
    const now = performance.now();
    // The gateway itself was blocked, so frames that arrived during that time have not been read
    // yet.
    const wasBlocked = now - this.#tickedAt > 4 * TICK_MS;
    this.#tickedAt = now;
    this.#writer.flush();
    for (const open of this.#open.values()) {
      if (!open.isReportedSlow) open.options?.onSlow?.();
      open.isReportedSlow = true;
    }
    if (wasBlocked || !this.#hasReceived || (this.#open.size === 0 && this.openStreams === 0)) {
      this.#lastReceivedAt = now;
      this.#pingedAt = 0;
    } else if (this.#pingedAt > 0) {
      if (now - this.#pingedAt > PONG_TIMEOUT_MS) this.close("it does not respond");
    } else if (now - this.#lastReceivedAt > PING_AFTER_MS) {
      this.#pingedAt = now;
      this.notify("ping", undefined);
    }
  }
}

const ERROR_KINDS: ReadonlySet<string> = new Set(Object.keys(ERRORS));

/** Returns the fault that the plugin reported. A fault of an unknown kind counts as a failure. */
function toFault(raw: unknown): Error {
  const { kind, message, code, param, retryAfterMs } = (raw ?? {}) as Record<string, unknown>;
  if (typeof kind !== "string" || !ERROR_KINDS.has(kind) || typeof message !== "string")
    return new PluginFailure("The plugin returned an invalid error.");
  return createFault(kind as Fault["kind"], message.slice(0, 4_000), {
    ...(typeof code === "string" && { code: code.slice(0, 100) }),
    ...(typeof param === "string" && { param: param.slice(0, 200) }),
    ...(typeof retryAfterMs === "number" && retryAfterMs >= 0 && { retryAfterMs }),
  });
}
