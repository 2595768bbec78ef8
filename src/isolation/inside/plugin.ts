// The other end: a plugin's own process, which is asked for its hooks. It reads frames, runs what they name, and writes answers.
import type { Duplex } from "node:stream";
import { fail, faultOf, type Fault } from "../../model/error.ts";
import { Passing } from "../../lib/passing.ts";
import { isPromise } from "../../lib/promise.ts";
import { Scope } from "../../lib/scope.ts";
import {
  frameIn,
  LineReader,
  LineWriter,
  revived,
  written,
  type Answer,
  type Question,
  type Telling,
} from "../frames.ts";
import type { LockedModules } from "../what-crosses.ts";
import { contextOf, type GatewayEnd, type Given } from "./context.ts";
import { Exchanges, type RequestFrame, type OutsideExchange } from "./exchange.ts";

type Said = Record<string, any>;
type Hook = (...given: any[]) => any;

/** How its definition is come by. */
export type LoadDefinition = (entry: string, locked?: LockedModules) => Promise<Said>;

const BATCH_MS = 16;

export class OutsidePlugin implements GatewayEnd {
  #out!: LineWriter;
  readonly #load: LoadDefinition;
  readonly #reader = new LineReader();
  readonly #waiting = new Map<
    number,
    { resolve(value: unknown): void; reject(error: Error): void; readonly lent: boolean }
  >();
  /** What was thrown by something that the gateway lends: let through, it is a failure and no word. */
  readonly #lent = new WeakSet<object>();
  readonly #exchanges = new Exchanges();
  readonly #stages = new Passing<{ hear(event: unknown): void; flush(): void; end(): void }>();
  readonly #scope = new Scope();
  #made: Said = {};
  /** As they are called. */
  readonly #hooks = new Map<string, Hook>();
  #last = 0;

  constructor(load: LoadDefinition) {
    this.#load = load;
  }

  /** Answers what is asked there, until there is no gateway any more. */
  speak(stream: Duplex): void {
    this.#out = new LineWriter(stream);
    stream.on("data", (chunk: Buffer) =>
      this.#reader.push(
        chunk,
        () => Infinity,
        (line) => {
          this.#hear(line);
          return true;
        },
      ),
    );
    // No gateway is there to work for.
    for (const end of ["close", "end", "error"]) stream.on(end, () => process.exit(0));
  }

  ask(name: string, given: unknown, of?: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ask = ++this.#last;
      this.#waiting.set(ask, { resolve, reject, lent: of === undefined });
      this.#out.write(written({ ask, name, with: given, ...(of !== undefined && { of }) }));
    });
  }

  /** At once: what it says of itself is there also when it breaks in the next line. */
  tell(name: string, given: unknown): void {
    this.#out.along(written({ tell: name, with: given }));
    this.#out.flush();
  }

  #hear(line: string): void {
    // From a letter that is rare: a quotation mark is looked behind wherever it stands.
    const plain = !line.includes('BigInt","data"') && !line.includes('Buffer","data"');
    const frame = plain ? frameIn(line) : (JSON.parse(line, revived) as ReturnType<typeof frameIn>);
    if (!frame) return;
    if ("ask" in frame) return this.#answer(frame);
    if ("tell" in frame) return this.#told(frame);
    const waiting = this.#waiting.get(frame.answer);
    this.#waiting.delete(frame.answer);
    if ("fault" in frame) {
      const { kind, message, ...more } = frame.fault;
      try {
        fail(kind, message, more);
      } catch (problem) {
        if (waiting?.lent) this.#lent.add(problem as Error);
        waiting?.reject(problem as Error);
      }
    } else if ("error" in frame) waiting?.reject(new Error(frame.error));
    else waiting?.resolve(frame.value);
  }

  /** A promise only where there is something to wait for. */
  #answer({ ask, name, with: given }: Question): void {
    const failed = (problem: unknown) => this.#say(this.#failure(ask, problem));
    try {
      const value: unknown = this.#work(ask, name, given as Said);
      if (isPromise(value))
        void value.then((later: unknown) => this.#say({ answer: ask, value: later }), failed);
      else this.#say({ answer: ask, value });
    } catch (problem) {
      failed(problem);
    }
  }

  #failure(ask: number, problem: unknown): Answer {
    const word = this.#wordOf(problem);
    return word
      ? { answer: ask, fault: { ...word, cause: undefined } }
      : { answer: ask, error: String((problem as Error)?.stack ?? problem).slice(0, 2_000) };
  }

  #say(said: Answer): void {
    let text: string;
    try {
      text = written(said);
    } catch {
      text = written({ answer: said.answer, error: "What it gave cannot be written down." });
    }
    this.#out.write(text);
  }

  #wordOf(problem: unknown): Fault | undefined {
    const lent = typeof problem === "object" && problem !== null && this.#lent.has(problem);
    return lent ? undefined : faultOf(problem);
  }

  #work(ask: number, name: string, given: Said): any {
    if (name === "describe") return this.#describe(given);
    if (name === "setup") return this.#setup(given as Given & Said);
    if (name === "command") return this.#made["commands"][given["name"]].run(given["input"]);
    if (name === "end") return this.#scope[Symbol.asyncDispose]();
    const hook = this.#hooks.get(name) ?? fail("internal", `There is no ${name}.`);
    const x = this.#exchanges.of(given as RequestFrame & Said);
    x.does = [];
    x.read = async () => x.take((await this.ask("read", {}, ask)) as RequestFrame);
    const value = HOOKS[name]!(hook, given, x, (what, of) => this.ask(what, of, ask));
    const told = (more: Said | undefined) =>
      x.does.length > 0 ? { ...more, does: x.does } : (more ?? {});
    return isPromise(value) ? value.then(told as (more: unknown) => Said) : told(value);
  }

  async #describe({ entry, locked }: Said): Promise<Said> {
    const {
      setup: _,
      check: __,
      needs,
      "~tollgate": kind,
      ...more
    } = await this.#load(entry, locked);
    const plain = Object.fromEntries(
      Object.entries((needs ?? {}) as Said).map(([need, value]) => [
        need,
        typeof value === "function" ? "function" : value,
      ]),
    );
    return { ...more, kind, ...(needs !== undefined && { needs: plain }) };
  }

  async #setup({ entry, locked, options, ...given }: Given & Said): Promise<Said> {
    const definition = await this.#load(entry, locked);
    for (const { severity = "error", message } of definition["check"]?.(options) ?? [])
      if (severity === "error") fail("invalid", message);
    this.#made = await definition["setup"](options, contextOf(given as Given, this, this.#scope));
    const commands = Object.entries((this.#made["commands"] ?? {}) as Said).map(
      ([name, { run: _, ...more }]) => [name, more],
    );
    const hooks = Object.keys(this.#made).filter((each) => each !== "commands");
    for (const name of hooks) {
      const hook: unknown = this.#made[name];
      if (typeof hook === "function") this.#hooks.set(name, hook.bind(this.#made) as Hook);
    }
    return { hooks, commands: Object.fromEntries(commands) };
  }

  #told({ tell, with: given }: Telling): void {
    const said = (given ?? {}) as Said;
    if (tell === "ping") this.tell("pong", {});
    else if (tell === "over") this.#over(said["x"]);
    else if (tell === "gone") this.#exchanges.gone(said["x"]);
    else if (tell === "leave") this.#scope.leave();
    else if (tell === "stage") this.#stage(said);
    else if (tell === "events") {
      const stage = this.#stages.get(String(said["stage"]));
      for (const event of said["events"]) stage?.hear(event);
      stage?.flush();
    } else if (tell === "passed") {
      this.#stages.take(String(said["stage"]))?.end();
    }
  }

  /** What was asked of it by a look at its end was asked before this is said. */
  #over(id: string): void {
    this.#exchanges.over(id);
    if (this.#made["watch"]) this.#out.write(written({ tell: "over", with: { x: id } }));
  }

  #stage({ stage, hook, ...given }: Said): void {
    const x = this.#exchanges.of(given as unknown as RequestFrame);
    const call = { ...given["call"], exchange: x, signal: x.signal };
    let out: unknown[] = [];
    let timer: NodeJS.Timeout | undefined;
    const flush = () => {
      clearTimeout(timer);
      timer = undefined;
      if (out.length > 0) this.tell("events", { stage, events: out });
      out = [];
    };
    const next = (event: unknown) => {
      out.push(event);
      timer ??= setTimeout(flush, BATCH_MS);
    };
    let over = false;
    const stop = (fault: unknown) => {
      if (over) return;
      over = true;
      flush();
      this.tell("stop", { stage, fault });
    };
    const broke = (problem: unknown) =>
      stop(
        this.#wordOf(problem) ?? { kind: "internal", message: String((problem as Error)?.message) },
      );
    let hear: Hook = () => {};
    try {
      hear =
        hook === "event" ? this.#made["event"](call, next, stop) : this.#made["watch"](call, stop);
    } catch (problem) {
      broke(problem);
    }
    this.#stages.put(String(stage), {
      hear(event) {
        if (over) return;
        try {
          hear(event);
        } catch (problem) {
          broke(problem);
        }
      },
      flush,
      end: () => clearTimeout(timer),
    });
  }
}

type AskGateway = (name: string, given: unknown) => Promise<any>;
type Run = (hook: Hook, given: Said, x: OutsideExchange, ask: AskGateway) => any;
const nothing = (value: unknown): any =>
  isPromise(value) ? value.then(() => undefined) : undefined;

const HOOKS: { readonly [hook: string]: Run } = {
  admit: (hook, { credential }, x) => nothing(hook(x, credential)),
  async edit(hook, { body }, x) {
    x.body = body;
    const said = (await hook(x)) as Said | undefined;
    x.body = undefined;
    // JSON has no word for a field that is taken away.
    const without = Object.keys(said ?? {}).filter((field) => said![field] === undefined);
    return { fields: said, without };
  },
  rewrite: async (hook, { request }, x) => ({ request: await hook(request, x) }),
  inspect: (hook, { request }, x) => nothing(hook(request, x)),
  async route(hook, { candidates }, x) {
    const said = await hook(candidates, x);
    const place = (candidate: unknown) => (candidates as unknown[]).indexOf(candidate);
    return {
      list: said.map((one: Said) => {
        const { candidate, kind, code, message } = one;
        return candidate && kind ? { i: place(candidate), kind, code, message } : { i: place(one) };
      }),
    };
  },
  async attempt(hook, { call }, x, ask) {
    let reply: object | undefined;
    const next = async () => {
      const head = await ask("next", {});
      const settled = async () => (await ask("settled", {})) as unknown;
      const record = async (max: number) => {
        const got = await ask("record", max);
        return got && { ...got, body: Buffer.from(got.body, "base64") };
      };
      return (reply = { ...head, record, settled });
    };
    const got = await hook({ ...call, exchange: x, signal: x.signal }, next);
    if (got === reply && reply) return { reply: true };
    if (got?.answer) return { answer: got.answer };
    return { recorded: { ...got, body: Buffer.from(got.body).toString("base64") } };
  },
  settle: (hook, { outcome }, x) => nothing(hook(x, outcome)),
};
