// The plugin's side of the connection. Reads frames, runs the hooks that they name, and writes
// replies.
import type { Duplex } from "node:stream";
import { fail, getFault, type Fault } from "../../model/error.ts";
import { ProbingMap } from "../../lib/probing-map.ts";
import { isPromise } from "../../lib/is-promise.ts";
import { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { BatchQueue } from "../../lib/queue/batch-queue.ts";
import {
  parseFrame,
  LineReader,
  LineWriter,
  frameReviver,
  serializeFrame,
  type ReplyFrame,
  type CallFrame,
  type NotifyFrame,
} from "../frames.ts";
import type { LockedModules } from "../serialization.ts";
import {
  createPluginContext,
  type GatewayConnection,
  type SetupParams,
  ExchangeProxies,
  type ExchangeParams,
  type ExchangeProxy,
} from "./plugin-context.ts";

type Untrusted = Record<string, any>;
type Hook = (...given: any[]) => any;

export type LoadDefinition = (entry: string, locked?: LockedModules) => Promise<Untrusted>;

const EVENT_BATCH_MS = 16;

export class PluginProcess implements GatewayConnection {
  #writer!: LineWriter;
  readonly #load: LoadDefinition;
  readonly #reader = new LineReader();
  readonly #pending = new Map<
    number,
    { resolve(value: unknown): void; reject(error: Error): void; readonly lent: boolean }
  >();
  /**
   * Errors from functions of the gateway. If a plugin does not catch such an error, the hook has
   * failed. The error does not count as a fault thrown by the plugin.
   */
  readonly #hostErrors = new WeakSet<object>();
  readonly #exchanges = new ExchangeProxies();
  readonly #streams = new ProbingMap<{ hear(event: unknown): void; flush(): void; end(): void }>();
  readonly #scope = new LifetimeScope();
  #plugin: Untrusted = {};
  /** Hooks by name, bound to the plugin. */
  readonly #hooks = new Map<string, Hook>();
  #lastCall = 0;

  constructor(load: LoadDefinition) {
    this.#load = load;
  }

  /** Handles calls until the gateway disconnects. */
  serve(stream: Duplex): void {
    this.#writer = new LineWriter(stream);
    stream.on("data", (chunk: Buffer) =>
      this.#reader.push(
        chunk,
        () => Infinity,
        (line) => {
          this.#onLine(line);
          return true;
        },
      ),
    );
    // Exits, because the gateway has ended.
    for (const end of ["close", "end", "error"]) stream.on(end, () => process.exit(0));
  }

  call(name: string, given: unknown, of?: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = ++this.#lastCall;
      this.#pending.set(call, { resolve, reject, lent: of === undefined });
      this.#writer.write(
        serializeFrame({
          call,
          method: name,
          params: given,
          ...(of !== undefined && { parent: of }),
        }),
      );
    });
  }

  /** Sends immediately, so that the message arrives even if the plugin crashes in the next line. */
  notify(name: string, given: unknown): void {
    this.#writer.writeLazily(serializeFrame({ notify: name, params: given }));
    this.#writer.flush();
  }

  #onLine(line: string): void {
    // Searches for text that begins with a rare letter, because a search for a quotation mark would
    // stop at every quotation mark.
    const plain = !line.includes('BigInt","data"') && !line.includes('Buffer","data"');
    const frame = plain
      ? parseFrame(line)
      : (JSON.parse(line, frameReviver) as ReturnType<typeof parseFrame>);
    if (!frame) return;
    if ("call" in frame) return this.#handleCall(frame);
    if ("notify" in frame) return this.#handleNotify(frame);
    const waiting = this.#pending.get(frame.reply);
    this.#pending.delete(frame.reply);
    if ("fault" in frame) {
      const { kind, message, ...more } = frame.fault;
      try {
        fail(kind, message, more);
      } catch (problem) {
        if (waiting?.lent) this.#hostErrors.add(problem as Error);
        waiting?.reject(problem as Error);
      }
    } else if ("error" in frame) waiting?.reject(new Error(frame.error));
    else waiting?.resolve(frame.value);
  }

  /** Handles a call. Creates a promise only if the result is asynchronous. */
  #handleCall({ call, method, params: given }: CallFrame): void {
    const failed = (problem: unknown) => this.#send(this.#errorReply(call, problem));
    try {
      const value: unknown = this.#dispatch(call, method, given as Untrusted);
      if (isPromise(value))
        void value.then((later: unknown) => this.#send({ reply: call, value: later }), failed);
      else this.#send({ reply: call, value });
    } catch (problem) {
      failed(problem);
    }
  }

  #errorReply(ask: number, problem: unknown): ReplyFrame {
    const fault = this.#faultOf(problem);
    return fault
      ? { reply: ask, fault: { ...fault, cause: undefined } }
      : { reply: ask, error: String((problem as Error)?.stack ?? problem).slice(0, 2_000) };
  }

  #send(value: ReplyFrame): void {
    let text: string;
    try {
      text = serializeFrame(value);
    } catch {
      text = serializeFrame({
        reply: value.reply,
        error: "The plugin returned a value that cannot be serialized.",
      });
    }
    this.#writer.write(text);
  }

  #faultOf(problem: unknown): Fault | undefined {
    const isHostError =
      typeof problem === "object" && problem !== null && this.#hostErrors.has(problem);
    return isHostError ? undefined : getFault(problem);
  }

  #dispatch(ask: number, name: string, given: Untrusted): any {
    if (name === "describe") return this.#describe(given);
    if (name === "setup") return this.#setup(given as SetupParams & Untrusted);
    if (name === "command") return this.#plugin["commands"][given["name"]].run(given["input"]);
    if (name === "end") return this.#scope[Symbol.asyncDispose]();
    const hook = this.#hooks.get(name) ?? fail("internal", `Unknown ${name}.`);
    const x = this.#exchanges.of(given as ExchangeParams & Untrusted);
    x.effects = [];
    x.readBody = async () => x.update((await this.call("read_body", {}, ask)) as ExchangeParams);
    const value = HOOK_RUNNERS[name]!(hook, given, x, (what, of) => this.call(what, of, ask));
    const withEffects = (more: Untrusted | undefined) =>
      x.effects.length > 0 ? { ...more, effects: x.effects } : (more ?? {});
    return isPromise(value)
      ? value.then(withEffects as (more: unknown) => Untrusted)
      : withEffects(value);
  }

  async #describe({ entry, locked }: Untrusted): Promise<Untrusted> {
    const {
      setup: _,
      check: __,
      needs,
      "~tollgate": kind,
      ...more
    } = await this.#load(entry, locked);
    const plain = Object.fromEntries(
      Object.entries((needs ?? {}) as Untrusted).map(([need, value]) => [
        need,
        typeof value === "function" ? "function" : value,
      ]),
    );
    return { ...more, kind, ...(needs !== undefined && { needs: plain }) };
  }

  async #setup({ entry, locked, options, ...given }: SetupParams & Untrusted): Promise<Untrusted> {
    const definition = await this.#load(entry, locked);
    for (const { severity = "error", message } of definition["check"]?.(options) ?? [])
      if (severity === "error") fail("invalid", message);
    this.#plugin = await definition["setup"](
      options,
      createPluginContext(given as SetupParams, this, this.#scope),
    );
    const commands = Object.entries((this.#plugin["commands"] ?? {}) as Untrusted).map(
      ([name, { run: _, ...more }]) => [name, more],
    );
    const hooks = Object.keys(this.#plugin).filter((each) => each !== "commands");
    for (const name of hooks) {
      const hook: unknown = this.#plugin[name];
      if (typeof hook === "function") this.#hooks.set(name, hook.bind(this.#plugin) as Hook);
    }
    return { hooks, commands: Object.fromEntries(commands) };
  }

  #handleNotify({ notify, params: given }: NotifyFrame): void {
    const params = (given ?? {}) as Untrusted;
    if (notify === "ping") this.notify("pong", {});
    else if (notify === "request_end") this.#endRequest(params["exchange"]);
    else if (notify === "request_canceled") this.#exchanges.cancel(params["exchange"]);
    else if (notify === "draining") this.#scope.beginClose();
    else if (notify === "stream_start") this.#startStream(params);
    else if (notify === "events") {
      const stream = this.#streams.get(String(params["stream"]));
      for (const event of params["events"]) stream?.hear(event);
      stream?.flush();
    } else if (notify === "stream_end") {
      this.#streams.remove(String(params["stream"]))?.end();
    }
  }

  /**
   * Ends a request. Calls from an observing hook at the end of the stream are sent before this
   * confirmation.
   */
  #endRequest(id: string): void {
    this.#exchanges.end(id);
    if (this.#plugin["watch"])
      this.#writer.write(serializeFrame({ notify: "request_end", params: { exchange: id } }));
  }

  #startStream({ stream, hook, ...given }: Untrusted): void {
    const x = this.#exchanges.of(given as unknown as ExchangeParams);
    const call = { ...given["call"], exchange: x, signal: x.signal };
    const out = new BatchQueue<unknown>({
      delayMs: EVENT_BATCH_MS,
      deliver: (events) => this.notify("events", { stream, events }),
    });
    const flush = () => void out.drain();
    const next = (event: unknown) => void out.push(event);
    let ended = false;
    const stop = (fault: unknown) => {
      if (ended) return;
      ended = true;
      flush();
      this.notify("stream_stop", { stream, fault });
    };
    const onError = (problem: unknown) =>
      stop(
        this.#faultOf(problem) ?? {
          kind: "internal",
          message: String((problem as Error)?.message),
        },
      );
    let hear: Hook = () => {};
    try {
      hear =
        hook === "event"
          ? this.#plugin["event"](call, next, stop)
          : this.#plugin["watch"](call, stop);
    } catch (problem) {
      onError(problem);
    }
    this.#streams.set(String(stream), {
      hear(event) {
        if (ended) return;
        try {
          hear(event);
        } catch (problem) {
          onError(problem);
        }
      },
      flush,
      end: () => out.stop(),
    });
  }
}

type CallGateway = (name: string, given: unknown) => Promise<any>;
type HookRunner = (hook: Hook, given: Untrusted, x: ExchangeProxy, ask: CallGateway) => any;
const toNothing = (value: unknown): any =>
  isPromise(value) ? value.then(() => undefined) : undefined;

const HOOK_RUNNERS: { readonly [hook: string]: HookRunner } = {
  admit: (hook, { credential }, x) => toNothing(hook(x, credential)),
  async edit(hook, { body }, x) {
    x.body = body;
    const fields = (await hook(x)) as Untrusted | undefined;
    x.body = undefined;
    // JSON cannot represent a removed field, so its name is sent separately.
    const without = Object.keys(fields ?? {}).filter((field) => fields![field] === undefined);
    return { fields, without };
  },
  rewrite: async (hook, { request }, x) => ({ request: await hook(request, x) }),
  inspect: (hook, { request }, x) => toNothing(hook(request, x)),
  async route(hook, { candidates }, x) {
    const result = await hook(candidates, x);
    const place = (candidate: unknown) => (candidates as unknown[]).indexOf(candidate);
    return {
      list: result.map((one: Untrusted) => {
        const { candidate, kind, code, message } = one;
        return candidate && kind ? { i: place(candidate), kind, code, message } : { i: place(one) };
      }),
    };
  },
  async attempt(hook, { call }, x, ask) {
    let reply: object | undefined;
    const next = async () => {
      const head = await ask("next", {});
      const whenSettled = async () => (await ask("when_settled", {})) as unknown;
      const recordResponse = async (max: number) => {
        const got = await ask("record_response", max);
        return got && { ...got, body: Buffer.from(got.body, "base64") };
      };
      return (reply = { ...head, recordResponse, whenSettled });
    };
    const got = await hook({ ...call, exchange: x, signal: x.signal }, next);
    if (got === reply && reply) return { reply: true };
    if (got?.response) return { response: got.response };
    return { recorded: { ...got, body: Buffer.from(got.body).toString("base64") } };
  },
  settle: (hook, { outcome }, x) => toNothing(hook(x, outcome)),
};
