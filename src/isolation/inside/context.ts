// What a plugin's `setup` is lent in its own process. What is here is its own; what is the gateway's is asked of it.
import { fail, faultOf } from "../../model/error.ts";
import type { AskedAnswer } from "../../plugin/asked.ts";
import type { Context, Logger } from "../../plugin/context.ts";
import { Scope, Shared } from "../../lib/scope.ts";
import { OUTSIDE_CONTEXT } from "../what-crosses.ts";

export interface GatewayEnd {
  ask(name: string, given: unknown, of?: number): Promise<unknown>;
  tell(name: string, given: unknown): void;
}
export interface Given {
  readonly id: string;
  readonly env?: readonly string[];
  readonly stateDir?: string;
}

const shared = new Shared();
/** Questions to models so far. */
let asked = 0;

export function contextOf(
  { id, env = [], stateDir }: Given,
  gateway: GatewayEnd,
  scope: Scope,
): Context {
  const line =
    (level: keyof Logger): Logger["info"] =>
    (fields, message) =>
      gateway.tell("log", { level, fields: sayable(fields), message });
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
    every: (ms, tick) =>
      scope.every(ms, tick, (error) =>
        log.error({ err: String(error) }, "a background task failed"),
      ),
    shared: (key, create, end) => shared.take(scope, key, create, end),
    async fetch(url, init = {}) {
      init.signal?.throwIfAborted();
      const { method, headers } = init;
      const body = init.body === undefined ? undefined : Buffer.from(init.body).toString("base64");
      const asked = gateway.ask("fetch", { url: String(url), method, headers, body });
      const got = (await given(asked, init.signal)) as {
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
    async ask({ path, body }, { as, signal }) {
      signal?.throwIfAborted();
      const n = ++asked;
      const enough = () => gateway.tell("enough", { n });
      signal?.addEventListener("abort", enough, { once: true });
      const answer = gateway.ask("ask", { x: as.id, n, path, body });
      const got = given(answer, signal ?? undefined);
      return (await got.finally(() => signal?.removeEventListener("abort", enough))) as AskedAnswer;
    },
    keys: { find: async (secret) => ((await gateway.ask("key", secret)) ?? undefined) as never },
    env: (name) =>
      env.includes(name) || process.env[name] !== undefined
        ? process.env[name]
        : fail("internal", `This plugin does not declare the variable ${name} in its needs.env.`, {
            code: "not_declared",
          }),
    readFile: async (path) =>
      Buffer.from((await gateway.ask("readFile", path)) as string, "base64"),
    stateDir: () => stateDir ?? fail("internal", "There is no folder for it."),
  } satisfies Pick<Context, (typeof OUTSIDE_CONTEXT)[number]> as Partial<Context>;
  return new Proxy(context, {
    get(of, member) {
      if (member in of || typeof member === "symbol" || member === "then")
        return of[member as keyof Context];
      return fail(
        "internal",
        `ctx.${member} is not lent outside the gateway: ${OUTSIDE_CONTEXT.join(", ")} are.`,
        { code: "not_outside" },
      );
    },
  }) as Context;
}

const given = <T>(asked: Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
  signal
    ? Promise.race([
        asked,
        new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        }),
      ])
    : asked;

/** Errors have no members that JSON sees. */
const sayable = (fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error
        ? (faultOf(value)?.message ?? `${value.name}: ${value.message}`)
        : value,
    ]),
  );
