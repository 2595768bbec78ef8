// One connection to a plugin outside. What it says is not believed: an answer to no question, a second one, a frame that is none, one
// that is too long, silence while something is asked of it: each ends the connection, and with it all that was asked.
import type { Duplex } from "node:stream";
import { Passing } from "../lib/passing.ts";
import { ERRORS, fault, faultOf, sayable, type Fault } from "../model/error.ts";
import {
  frameIn,
  LineReader,
  LineWriter,
  type Answer,
  type Question,
  type Telling,
  written,
} from "./frames.ts";

/** Of one frame, beside twice what was asked: a recorded answer, a list of models. */
const FRAME_BYTES = 8 * 1024 * 1024;
/** What waits to be read by it. */
const UNREAD_BYTES = 64 * 1024 * 1024;
/** Things told and questions within a second. */
const MOST_SAID = 20_000;
/** So long after its last word it is asked whether it is there, and so long that is waited for. */
const QUIET_MS = 500;
const SILENT_MS = 2_000;
const TICK_MS = 250;
/** Questions of its own that are under way at one time. */
const MOST_ASKED = 1_000;

/** What it may ask of the gateway, by name. */
export type LentAnswers = Readonly<Record<string, (given: any) => unknown>>;

export interface LinkOptions {
  readonly stream: Duplex;
  /** What it may ask at any time. */
  readonly answers: LentAnswers;
  /** What it tells. */
  readonly heard: (name: string, given: unknown) => void;
  /** It is over, once, with the reason. */
  readonly over: (why: string) => void;
}

/** Of one question. */
export interface AskingOptions {
  /** What it may ask as long as this question is open. */
  readonly answers?: LentAnswers | undefined;
  /** It is still open a little later: once. */
  slow?(): void;
  /** What is made of its answer, at once. What it throws is what the question comes to. */
  read?(value: unknown): unknown;
}

interface Open {
  readonly of: AskingOptions | undefined;
  readonly bytes: number;
  slowed: boolean;
  resolve(value: unknown): void;
  reject(problem: Error): void;
}

/** The plugin failed: no word of its own. */
export class PluginFailure extends Error {
  override name = "PluginFailure";
}

export class OutsideLink {
  readonly #of: LinkOptions;
  readonly #reader = new LineReader();
  readonly #writer: LineWriter;
  /** By their numbers. */
  #open = new Passing<Open, number>();
  readonly #timer: NodeJS.Timeout;
  #last = 0;
  #sent = 0;
  #asked = 0;
  #said = 0;
  #heardAt = performance.now();
  #pingedAt = 0;
  #tickedAt = performance.now();
  #windowAt = performance.now();
  #over = false;
  /** Before its first word it is being started, and its starter has a limit for that. */
  #spoke = false;
  /** Things that are under way beside questions: answers that pass by it. */
  busy = 0;

  constructor(of: LinkOptions) {
    this.#of = of;
    const { stream } = of;
    this.#writer = new LineWriter(stream);
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    stream.on("error", () => {});
    stream.on("close", () => this.end("it has gone"));
    stream.on("end", () => this.end("it has gone"));
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  get over(): boolean {
    return this.#over;
  }

  ask(name: string, given: unknown, of?: AskingOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(new PluginFailure("The plugin is gone."));
      const ask = ++this.#last;
      const text = written({ ask, name, with: given });
      if (this.#open.size === 0) this.#heardAt = performance.now();
      this.#open.put(ask, { of, bytes: text.length, slowed: false, resolve, reject });
      this.#sent += text.length;
      this.#write(text);
    });
  }

  tell(name: string, given: unknown): void {
    if (!this.#over) this.#write(written({ tell: name, with: given }));
  }

  end(why: string): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#timer);
    this.#of.stream.destroy();
    for (const { reject } of this.#open.values())
      reject(new PluginFailure(`The plugin is gone: ${why}.`));
    this.#open = new Passing();
    this.#of.over(why);
  }

  /** What it need not know at once: it goes along with something else, or a little later. */
  mention(name: string, given: unknown): void {
    if (!this.#over) this.#writer.along(written({ tell: name, with: given }));
  }

  #write(text: string): void {
    this.#writer.write(text);
    if (this.#writer.unread > UNREAD_BYTES) this.end("it does not read what it is told");
  }

  #read(chunk: Buffer): void {
    this.#spoke = true;
    this.#heardAt = performance.now();
    this.#pingedAt = 0;
    const most = () => FRAME_BYTES + 2 * this.#sent;
    const well = this.#reader.push(chunk, most, (line) => {
      this.#hear(line);
      return !this.#over;
    });
    if (!well) this.end("it said more at once than it may");
  }

  #hear(line: string): void {
    const frame = frameIn(line);
    if (!frame) return this.end("it said something that is no frame");
    if ("answer" in frame) return this.#answered(frame);
    const now = performance.now();
    if (now - this.#windowAt > 1_000) {
      this.#windowAt = now;
      this.#said = 0;
    }
    if (++this.#said > MOST_SAID) return this.end("it says too much");
    if ("tell" in frame) return this.#told(frame);
    void this.#answer(frame);
  }

  #told({ tell, with: given }: Telling): void {
    if (tell === "pong") return;
    try {
      this.#of.heard(tell, given);
    } catch {
      this.end(`what it told cannot be used (${tell.slice(0, 40)})`);
    }
  }

  #answered(frame: Answer): void {
    const open = this.#open.take(frame.answer);
    if (!open) return this.end("it answered what it was not asked, or twice");
    this.#sent -= open.bytes;
    if ("fault" in frame) return open.reject(worded(frame.fault));
    if ("error" in frame)
      return open.reject(new PluginFailure(String(frame.error).slice(0, 2_000)));
    if (!open.of?.read) return open.resolve(frame.value);
    try {
      open.resolve(open.of.read(frame.value));
    } catch (problem) {
      open.reject(problem as Error);
    }
  }

  async #answer({ ask, name, with: given, of }: Question): Promise<void> {
    if (++this.#asked > MOST_ASKED) return this.end("it asks too much at one time");
    const answers = of === undefined ? this.#of.answers : this.#open.get(of)?.of?.answers;
    let said: Answer;
    try {
      if (!answers || !Object.hasOwn(answers, name))
        throw new Error(`${name.slice(0, 40)} cannot be asked here, or not any more.`);
      said = { answer: ask, value: await answers[name]!(given) };
    } catch (problem) {
      const word = faultOf(problem);
      said = word
        ? { answer: ask, fault: { ...word, cause: undefined } }
        : { answer: ask, error: sayable(problem, "it failed") };
    }
    this.#asked--;
    if (!this.#over) this.#write(written(said));
  }

  #tick(): void {
    const now = performance.now();
    // The gateway itself stood still: what has come meanwhile is not read yet.
    const stood = now - this.#tickedAt > 4 * TICK_MS;
    this.#tickedAt = now;
    this.#writer.flush();
    for (const open of this.#open.values()) {
      if (!open.slowed) open.of?.slow?.();
      open.slowed = true;
    }
    if (stood || !this.#spoke || (this.#open.size === 0 && this.busy === 0)) {
      this.#heardAt = now;
      this.#pingedAt = 0;
    } else if (this.#pingedAt > 0) {
      if (now - this.#pingedAt > SILENT_MS) this.end("it does not answer");
    } else if (now - this.#heardAt > QUIET_MS) {
      this.#pingedAt = now;
      this.tell("ping", undefined);
    }
  }
}

const KINDS: ReadonlySet<string> = new Set(Object.keys(ERRORS));

/** What it refused with. A kind that there is not is a failure. */
function worded(said: unknown): Error {
  const { kind, message, code, param, retryAfterMs } = (said ?? {}) as Record<string, unknown>;
  if (typeof kind !== "string" || !KINDS.has(kind) || typeof message !== "string")
    return new PluginFailure("It refused with something that is no fault.");
  return fault(kind as Fault["kind"], message.slice(0, 4_000), {
    ...(typeof code === "string" && { code: code.slice(0, 100) }),
    ...(typeof param === "string" && { param: param.slice(0, 200) }),
    ...(typeof retryAfterMs === "number" && retryAfterMs >= 0 && { retryAfterMs }),
  });
}
