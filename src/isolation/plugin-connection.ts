// One connection to a plugin outside. What it says is not believed: an answer to no question, a second one, a frame that is none, one
// that is too long, silence while something is asked of it: each ends the connection, and with it all that was asked.
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

/** Of one frame, beside twice what was asked: a recorded answer, a list of models. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;
/** What waits to be read by it. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** Things told and questions within a second. */
const MAX_FRAMES_PER_SECOND = 20_000;
/** So long after its last word it is asked whether it is there, and so long that is waited for. */
const PING_AFTER_MS = 500;
const PONG_TIMEOUT_MS = 2_000;
const TICK_MS = 250;
/** Questions of its own that are under way at one time. */
const MAX_OPEN_CALLS = 1_000;

/** What it may ask of the gateway, by name. */
export type HostHandlers = Readonly<Record<string, (given: any) => unknown>>;

export interface ConnectionOptions {
  readonly stream: Duplex;
  /** What it may ask at any time. */
  readonly handlers: HostHandlers;
  /** What it tells. */
  readonly onNotify: (name: string, given: unknown) => void;
  /** It is over, once, with the reason. */
  readonly onClose: (why: string) => void;
}

/** Of one question. */
export interface CallOptions {
  /** What it may ask as long as this question is open. */
  readonly handlers?: HostHandlers | undefined;
  /** It is still open a little later: once. */
  onSlow?(): void;
  /** What is made of its answer, at once. What it throws is what the question comes to. */
  parseReply?(value: unknown): unknown;
}

interface OpenCall {
  readonly options: CallOptions | undefined;
  readonly bytes: number;
  isReportedSlow: boolean;
  resolve(value: unknown): void;
  reject(problem: Error): void;
}

/** The plugin failed: no word of its own. */
export class PluginFailure extends Error {
  override name = "PluginFailure";
}

export class PluginConnection {
  readonly #options: ConnectionOptions;
  readonly #reader = new LineReader();
  readonly #writer: LineWriter;
  /** By their numbers. */
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
  /** Before its first word it is being started, and its starter has a limit for that. */
  #hasReceived = false;
  /** Things that are under way beside questions: answers that pass by it. */
  openStreams = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { stream } = options;
    this.#writer = new LineWriter(stream);
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    stream.on("error", () => {});
    stream.on("close", () => this.close("it has gone"));
    stream.on("end", () => this.close("it has gone"));
    this.#timer = setInterval(() => this.#checkHealth(), TICK_MS);
    this.#timer.unref();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  call(name: string, given: unknown, options?: CallOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new PluginFailure("The plugin is gone."));
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
      reject(new PluginFailure(`The plugin is gone: ${why}.`));
    this.#open = new ProbingMap();
    this.#options.onClose(why);
  }

  /** What it need not know at once: it goes along with something else, or a little later. */
  notifyLazily(name: string, given: unknown): void {
    if (!this.#closed) this.#writer.writeLazily(serializeFrame({ notify: name, params: given }));
  }

  #write(text: string): void {
    this.#writer.write(text);
    if (this.#writer.unreadBytes > MAX_UNREAD_BYTES) this.close("it does not read what it is told");
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
    if (!well) this.close("it said more at once than it may");
  }

  #onLine(line: string): void {
    const frame = parseFrame(line);
    if (!frame) return this.close("it said something that is no frame");
    if ("reply" in frame) return this.#handleReply(frame);
    const now = performance.now();
    if (now - this.#windowStartedAt > 1_000) {
      this.#windowStartedAt = now;
      this.#framesInWindow = 0;
    }
    if (++this.#framesInWindow > MAX_FRAMES_PER_SECOND) return this.close("it says too much");
    if ("notify" in frame) return this.#handleNotify(frame);
    void this.#handleCall(frame);
  }

  #handleNotify({ notify, params: given }: NotifyFrame): void {
    if (notify === "pong") return;
    try {
      this.#options.onNotify(notify, given);
    } catch {
      this.close(`what it told cannot be used (${notify.slice(0, 40)})`);
    }
  }

  #handleReply(frame: ReplyFrame): void {
    const open = this.#open.remove(frame.reply);
    if (!open) return this.close("it answered what it was not asked, or twice");
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
    if (++this.#openHostCalls > MAX_OPEN_CALLS) return this.close("it asks too much at one time");
    const answers =
      parent === undefined ? this.#options.handlers : this.#open.get(parent)?.options?.handlers;
    let reply: ReplyFrame;
    try {
      if (!answers || !Object.hasOwn(answers, method))
        throw new Error(`${method.slice(0, 40)} cannot be asked here, or not any more.`);
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
    // The gateway itself stood still: what has come meanwhile is not read yet.
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
      if (now - this.#pingedAt > PONG_TIMEOUT_MS) this.close("it does not answer");
    } else if (now - this.#lastReceivedAt > PING_AFTER_MS) {
      this.#pingedAt = now;
      this.notify("ping", undefined);
    }
  }
}

const ERROR_KINDS: ReadonlySet<string> = new Set(Object.keys(ERRORS));

/** What it refused with. A kind that there is not is a failure. */
function toFault(raw: unknown): Error {
  const { kind, message, code, param, retryAfterMs } = (raw ?? {}) as Record<string, unknown>;
  if (typeof kind !== "string" || !ERROR_KINDS.has(kind) || typeof message !== "string")
    return new PluginFailure("It refused with something that is no fault.");
  return createFault(kind as Fault["kind"], message.slice(0, 4_000), {
    ...(typeof code === "string" && { code: code.slice(0, 100) }),
    ...(typeof param === "string" && { param: param.slice(0, 200) }),
    ...(typeof retryAfterMs === "number" && retryAfterMs >= 0 && { retryAfterMs }),
  });
}
