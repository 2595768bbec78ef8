// The context for a plugin's `setup` in its own process. Local members work in this process, and
// the others call the gateway.
import { fail, getFault } from "../../model/error.ts";
import type { SubrequestResult, Context, Logger } from "../../plugin/context.ts";
import { LifetimeScope, SharedResources } from "../../lib/lifetime-scope.ts";
import { ISOLATED_CONTEXT_MEMBERS } from "../serialization.ts";
import { KnownRequests } from "../known-requests.ts";

export interface GatewayConnection {
  call(name: string, given: unknown, of?: number): Promise<unknown>;
  notify(name: string, given: unknown): void;
}
export interface SetupParams {
  readonly id: string;
  readonly env?: readonly string[];
  readonly stateDir?: string;
}

const shared = new SharedResources();
/** Number of subrequests that were started. */
let subrequestCount = 0;

export function createPluginContext(
  { id, env = [], stateDir }: SetupParams,
  gateway: GatewayConnection,
  scope: LifetimeScope,
): Context {
  const line =
    (level: keyof Logger): Logger["info"] =>
    (fields, message) =>
      gateway.notify("log", { level, fields: toLogFields(fields), message });
  const log = {
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
  };
  const context = {
    id,
    log,
    signal: scope.signal,
    own: (thing) => scope.own(thing),
    onDispose: (undo) => scope.defer(undo),
    runEvery: (ms, tick) =>
      scope.every(ms, tick, (error) => log.error({ err: String(error) }, "background task failed")),
    shared: (key, create, end) => shared.acquire(scope, key, create, end),
    async fetch(url, init = {}) {
      init.signal?.throwIfAborted();
      const { method, headers } = init;
      const body = init.body === undefined ? undefined : Buffer.from(init.body).toString("base64");
      const response = gateway.call("fetch", { url: String(url), method, headers, body });
      const got = (await withSignal(response, init.signal)) as {
        status: number;
        headers: [string, string][];
        body: string;
      };
      const none = got.status === 204 || got.status === 205 || got.status === 304;
      return new Response(none ? null : Buffer.from(got.body, "base64"), {
        status: got.status,
        headers: got.headers,
      });
    },
    async sendSubrequest({ path, body, headers }, { parentRequest, signal, onEvent }) {
      signal?.throwIfAborted();
      if (onEvent)
        fail("internal", "onEvent is not available in an isolated plugin.", {
          code: "not_outside",
        });
      const n = ++subrequestCount;
      const cancel = () => gateway.notify("cancel", { n });
      signal?.addEventListener("abort", cancel, { once: true });
      const request = { exchange: parentRequest.id, n, path, body, headers };
      const answer = gateway.call("subrequest", request);
      const got = withSignal(answer, signal ?? undefined);
      return (await got.finally(() =>
        signal?.removeEventListener("abort", cancel),
      )) as SubrequestResult;
    },
    keys: {
      find: async (secret) => ((await gateway.call("find_key", secret)) ?? undefined) as never,
      findByDigest: async (digest) =>
        ((await gateway.call("find_key_by_digest", digest)) ?? undefined) as never,
      read: async (digest) => ((await gateway.call("read_key", digest)) ?? undefined) as never,
      write: async (record) => void (await gateway.call("write_key", record)),
    },
    env: (name) =>
      env.includes(name) || process.env[name] !== undefined
        ? process.env[name]
        : fail("internal", `This plugin does not declare the variable ${name} in its needs.env.`, {
            code: "not_declared",
          }),
    readFile: async (path) =>
      Buffer.from((await gateway.call("read_file", path)) as string, "base64"),
    stateDir: () => stateDir ?? fail("internal", "This plugin has no data directory."),
  } satisfies Pick<Context, (typeof ISOLATED_CONTEXT_MEMBERS)[number]> as Partial<Context>;
  return new Proxy(context, {
    get(of, member) {
      if (member in of || typeof member === "symbol" || member === "then")
        return of[member as keyof Context];
      return fail(
        "internal",
        `ctx.${member} is not available in an isolated plugin. Available: ${ISOLATED_CONTEXT_MEMBERS.join(", ")}.`,
        { code: "not_outside" },
      );
    },
  }) as Context;
}

const withSignal = <T>(pending: Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
  signal
    ? Promise.race([
        pending,
        new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        }),
      ])
    : pending;

/** Replaces errors by text, because JSON does not serialize their properties. */
const toLogFields = (
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error
        ? (getFault(value)?.message ?? `${value.name}: ${value.message}`)
        : value,
    ]),
  );

// Requests in the process of an isolated plugin. All hooks of one request receive the same object.

type Untrusted = Readonly<Record<string, unknown>>;
export interface ExchangeParams {
  readonly exchange: Untrusted & { readonly id: string };
  readonly request?: unknown;
}
/** Effects of a hook, in order. */
type HookEffects = unknown[][];

const HEAD_FIELDS = [
  "id",
  "frontend",
  "method",
  "path",
  "address",
  "certificate",
  "params",
  "headers",
  "credentialSources",
  "cookies",
  "identity",
  "limits",
  "privacy",
];
const BODY_FIELDS = [
  "protocol",
  "operation",
  "actionType",
  "action",
  "model",
  "stream",
  "features",
  "inputSize",
];

/** One request. Its effects are recorded and sent with the hook's reply. */
export class ExchangeProxy {
  #fields: Untrusted = {};
  #request: unknown;
  #body: unknown;
  #abortController: AbortController | undefined;
  #ended = false;
  /** Effects of the hook that currently runs. */
  effects: HookEffects = [];
  readBody: () => Promise<unknown> = () => fail("internal", "This route does not read the body.");

  update({ exchange, request }: ExchangeParams): this {
    this.#fields = exchange;
    if (request !== undefined) this.#request = request;
    return this;
  }
  static {
    for (const member of [...HEAD_FIELDS, ...BODY_FIELDS])
      Object.defineProperty(this.prototype, member, {
        get(this: ExchangeProxy) {
          return this.#fields[member];
        },
        enumerable: true,
      });
  }
  get query(): URLSearchParams {
    return new URLSearchParams(this.#fields["query"] as string);
  }
  get request(): unknown {
    return this.#request ?? fail("internal", "x.request is not available before the body is read.");
  }
  get body(): unknown {
    return (
      this.#body ??
      fail("internal", "In an isolated plugin, x.body is available only in edit. Use x.request.")
    );
  }
  set body(fields: unknown) {
    this.#body = fields;
  }
  get signal(): AbortSignal {
    this.#abortController ??= new AbortController();
    if (this.#ended) this.#abortController.abort();
    return this.#abortController.signal;
  }
  end(): void {
    this.#ended = true;
    this.#abortController?.abort();
  }
  identify(who: unknown): void {
    this.effects.push(["identify", who]);
    this.#fields = { ...this.#fields, identity: who };
  }
  requirePrivacy(to: string): void {
    this.effects.push(["requirePrivacy", to]);
  }
  acquireSlot(scope: string, max: number): void {
    this.effects.push(["acquireSlot", scope, max]);
  }
  setResponseHeader(name: string, value: string): void {
    this.effects.push(["setResponseHeader", name, value]);
  }
  addLabel(name: string, value: string): void {
    this.effects.push(["addLabel", name, value]);
  }
  setRpcOperation(operation: unknown): void {
    this.effects.push(["setRpcOperation", operation]);
  }
}

export class ExchangeProxies {
  readonly #byId = new KnownRequests<ExchangeProxy>();

  of(frame: ExchangeParams): ExchangeProxy {
    const { id } = frame.exchange;
    let x = this.#byId.get(id);
    if (!x) this.#byId.set(id, (x = new ExchangeProxy()));
    return x.update(frame);
  }
  cancel(id: string): void {
    this.#byId.get(id)?.end();
  }
  end(id: string): void {
    this.#byId.remove(id)?.end();
  }
}
