// The context for a plugin's `setup` in its own process. Local members work in this process, and
// the others call the gateway.
import { fail, getFault } from "../../model/error.ts";
import type { SubrequestResult, Context, Logger } from "../../plugin/context.ts";
import { LifetimeScope, SharedResources } from "../../lib/lifetime-scope.ts";
import { ISOLATED_CONTEXT_MEMBERS } from "../serialization.ts";

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
/** Number of subrequests so far. */
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
    async sendSubrequest({ path, body }, { parentRequest, signal }) {
      signal?.throwIfAborted();
      const n = ++subrequestCount;
      const cancel = () => gateway.notify("cancel", { n });
      signal?.addEventListener("abort", cancel, { once: true });
      const answer = gateway.call("subrequest", { exchange: parentRequest.id, n, path, body });
      const got = withSignal(answer, signal ?? undefined);
      return (await got.finally(() =>
        signal?.removeEventListener("abort", cancel),
      )) as SubrequestResult;
    },
    keys: {
      find: async (secret) => ((await gateway.call("find_key", secret)) ?? undefined) as never,
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
