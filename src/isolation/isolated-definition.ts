// Presents an isolated plugin as an ordinary definition: `setup` starts the plugin, and its hooks
// call the plugin. No code of the plugin runs in this process. Its description is validated like
// every definition.
import { resolve } from "node:path";
import { registerOutage } from "../lib/plugin-outage.ts";
import { fail } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { Context } from "../plugin/context.ts";
import type { Commands, PluginCommand } from "../plugin/plugin.ts";
import { PluginSubrequests } from "./plugin-subrequests.ts";
import { startChild } from "./child-process.ts";
import { socketConnector, PluginSupervisor, type PluginConnector } from "./plugin-supervisor.ts";
import { type IsolatedPlugin, createIsolatedHooks, type SentRequest } from "./isolated-hooks.ts";
import { PluginConnection, PluginFailure, type HostHandlers } from "./plugin-connection.ts";
import { EventStreams } from "./event-streams.ts";
import { KnownRequests } from "./known-requests.ts";
import { type LockedModules, ISOLATABLE_HOOKS, type IsolatableHook } from "./serialization.ts";

/**
 * Location of a plugin: code that a child process imports, or a socket that another program serves.
 */
export type PluginLocation =
  | {
      readonly entry: string;
      readonly readPaths: readonly string[];
      readonly configDir: string;
      /**
       * The only files that the plugin may load, with their hashes. If unset, the package is not
       * locked.
       */
      readonly locked?: LockedModules | undefined;
    }
  | { readonly socket: string };

type Untrusted = Readonly<Record<string, unknown>>;

const isMapping = (it: unknown): it is Untrusted =>
  typeof it === "object" && it !== null && !Array.isArray(it);

/** Timeout in milliseconds. Includes the start of a process and its imports. */
const DESCRIBE_TIMEOUT_MS = 29_000;
const COPIED_MEMBERS = [
  "api",
  "since",
  "name",
  "summary",
  "stability",
  "unverified",
  "sends",
  "options",
];

/** Returns the plugin's description. Rejects if the plugin does not provide one. */
export async function describePlugin(place: PluginLocation): Promise<unknown> {
  const lines: string[] = [];
  const reached = await connectorOf(place, {
    env: {},
    onOutput: (line) => lines.length < 5 && lines.push(line),
  })();
  let why = "";
  const link = new PluginConnection({
    stream: reached.stream,
    handlers: {},
    onNotify: () => {},
    onClose: (how) => (why = how),
  });
  const timer = setTimeout(
    () => link.close("it did not describe itself in time"),
    DESCRIBE_TIMEOUT_MS,
  );
  try {
    const description = await link.call(
      "describe",
      "entry" in place ? { entry: place.entry, locked: place.locked } : {},
    );
    return toDefinition(place, description);
  } catch (problem) {
    const more = lines.find((line) => /\w*Error/.test(line));
    throw why === "" || more === undefined ? problem : new PluginFailure(more);
  } finally {
    clearTimeout(timer);
    link.close("its description was read");
    reached.kill();
  }
}

function connectorOf(
  place: PluginLocation,
  of: {
    env: Readonly<Record<string, string>>;
    folder?: string;
    files?: readonly string[];
    onOutput(line: string): void;
  },
): PluginConnector {
  if ("socket" in place) return socketConnector(place.socket);
  const { env, folder, onOutput } = of;
  const reads = [...place.readPaths, ...(of.files ?? [])];
  return () =>
    startChild({
      readPaths: reads,
      env,
      onOutput,
      ...(folder !== undefined && { writableDir: folder }),
    });
}

/** Creates a definition in the same form as the default export of a module. */
function toDefinition(place: PluginLocation, raw: unknown): object {
  if (!isMapping(raw)) throw new PluginFailure("The plugin's description is invalid.");
  const definition: Record<string, unknown> = {
    "~tollgate": raw["kind"] ?? "middleware",
    "~isolated": true,
  };
  for (const member of COPIED_MEMBERS)
    if (raw[member] !== undefined) definition[member] = raw[member];
  const needs = raw["needs"];
  if (needs !== undefined) definition["needs"] = needs;
  for (const [need, value] of Object.entries(isMapping(needs) ? needs : {}))
    if (value === "function")
      throw new PluginFailure(
        `Its needs.${need} is a function, which is not allowed in an isolated plugin: use a list. To take a URL from an option, mark the option x-origin in the schema.`,
      );
  return {
    ...definition,
    setup: (options: Untrusted, ctx: Context) =>
      setUpPlugin(place, needs as Untrusted | undefined, options, ctx),
  };
}

async function setUpPlugin(
  place: PluginLocation,
  needs: Untrusted | undefined,
  options: Untrusted,
  ctx: Context,
): Promise<object> {
  const stages = new EventStreams();
  const requests = new KnownRequests<SentRequest>();
  const subrequests = new PluginSubrequests(
    (request, of) => ctx.sendSubrequest(request, of),
    requests,
  );
  const env: Record<string, string> = {};
  for (const name of (needs?.["env"] as readonly string[] | undefined) ?? []) {
    const value = ctx.env(name);
    if (value !== undefined) env[name] = value;
  }
  const stateDir = "entry" in place ? ctx.stateDir() : undefined;
  const files = "entry" in place ? ((needs?.["files"] as readonly string[] | undefined) ?? []) : [];
  const setup = {
    id: ctx.id,
    options,
    ...("entry" in place && {
      entry: place.entry,
      locked: place.locked,
      stateDir,
      env: Object.keys(env),
    }),
  };
  const supervisor = new PluginSupervisor({
    connect: connectorOf(place, {
      env,
      files: "entry" in place ? files.map((file) => resolve(place.configDir, file)) : [],
      ...(stateDir !== undefined && { folder: stateDir }),
      onOutput: (line) => ctx.log.info({ line }, "isolated plugin output"),
    }),
    handlers: contextHandlers(ctx, subrequests),
    onNotify(name, given) {
      if (name === "cancel") subrequests.cancel(given);
      else if (name === "request_end")
        requests.remove(String(isMapping(given) ? given["exchange"] : undefined));
      else onNotification(name, given, stages, ctx);
    },
    setup: (link) => link.call("setup", setup),
    onExit: (why, pauseMs) => {
      stages.failAll();
      subrequests.cancelAll();
      // The next connection may already have received requests, and these are kept.
      for (const { exchange, connection } of requests.values())
        if (connection.isClosed) requests.remove(exchange.id);
      ctx.log.warn({ reason: why, retry_ms: pauseMs }, "isolated plugin exited, restarting");
    },
  });
  ctx.onDispose(() => supervisor.close());
  ctx.signal.addEventListener("abort", () => {
    const link = supervisor.connection();
    if (!("then" in link)) link.notify("draining", undefined);
    else link.catch(() => {});
  });
  try {
    const description = await supervisor.start();
    return toHooks(description, supervisor, {
      streams: stages,
      requests,
      confirmsRequestEnd: "entry" in place,
    });
  } catch (problem) {
    await supervisor.close();
    throw problem;
  }
}

function toHooks(
  raw: unknown,
  supervisor: PluginSupervisor,
  more: Omit<IsolatedPlugin, "connection">,
): object {
  if (!isMapping(raw) || !Array.isArray(raw["hooks"]))
    return fail("invalid", "The plugin does not list its hooks.");
  const other = (raw["hooks"] as readonly unknown[]).find(
    (hook) => !ISOLATABLE_HOOKS.includes(hook as IsolatableHook),
  );
  if (other !== undefined)
    fail(
      "invalid",
      `its ${String(other).slice(0, 40)} is not supported in an isolated plugin: ${ISOLATABLE_HOOKS.join(", ")}, and commands are`,
      { code: "not_outside" },
    );
  const of = { connection: () => supervisor.connection(), ...more };
  const hooks = createIsolatedHooks(of, raw["hooks"] as IsolatableHook[]);
  const all = { ...hooks, ...toCommands(raw["commands"], supervisor) };
  return registerOutage(all, () => supervisor.outage);
}

function toCommands(raw: unknown, supervisor: PluginSupervisor): Commands {
  if (!isMapping(raw)) return {};
  const commands: Record<string, PluginCommand> = {};
  for (const [name, one] of Object.entries(raw)) {
    if (!isMapping(one) || typeof one["summary"] !== "string")
      return fail("invalid", `its command ${name.slice(0, 40)} has no description`);
    const run = async (input: JsonObject): Promise<Json> => {
      const link = await supervisor.connection();
      return (await link.call("command", { name, input })) as Json;
    };
    commands[name] = { ...(one as unknown as PluginCommand), run };
  }
  return { commands };
}

/**
 * Functions of the context that an isolated plugin can call. They apply the same rules as the
 * context.
 */
const contextHandlers = (ctx: Context, asks: PluginSubrequests): HostHandlers => ({
  subrequest: (request: unknown) => asks.send(request),
  async fetch({ url, method, headers, body }: Record<string, unknown>) {
    const answer = await ctx.fetch(String(url), {
      ...(typeof method === "string" && { method }),
      ...(isMapping(headers) && { headers: headers as Record<string, string> }),
      ...(typeof body === "string" && { body: Buffer.from(body, "base64") }),
    });
    return {
      status: answer.status,
      headers: [...answer.headers],
      body: Buffer.from(await answer.arrayBuffer()).toString("base64"),
    };
  },
  find_key: (secret: unknown) => ctx.keys.find(String(secret)),
  find_key_by_digest: (digest: unknown) => ctx.keys.findByDigest(String(digest)),
  read_key: (digest: unknown) => ctx.keys.read(String(digest)),
  write_key: (record: unknown) => ctx.keys.write(record as never),
  read_file: async (path: unknown) => (await ctx.readFile(String(path))).toString("base64"),
});

const LEVELS: ReadonlySet<unknown> = new Set(["debug", "info", "warn", "error"]);
let logWindow = { at: 0, lines: 0 };
/** Maximum number of log lines per second of all isolated plugins together. */
const MAX_LOG_LINES_PER_SECOND = 200;

function onNotification(name: string, given: unknown, stages: EventStreams, ctx: Context): void {
  if (name === "events" || name === "stream_stop") return stages.onNotify(name, given);
  if (name !== "log" || !isMapping(given)) throw new Error("unknown");
  const now = performance.now();
  if (now - logWindow.at > 1_000) logWindow = { at: now, lines: 0 };
  if (++logWindow.lines > MAX_LOG_LINES_PER_SECOND) return;
  const { level, fields, message } = given;
  const text = JSON.stringify(fields ?? {});
  if (!LEVELS.has(level)) throw new Error("no level");
  ctx.log[level as "info"](
    isMapping(fields) && text.length <= 4_000 ? fields : {},
    String(message).slice(0, 1_000),
  );
}
