// A plugin outside, as the rest of the gateway knows any: a definition whose `setup` begins it, and hooks that ask it. No line of its
// code runs here; what it says of itself is judged as every definition is.
import { resolve } from "node:path";
import { reportsOutage } from "../lib/outage.ts";
import { fail } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { Context } from "../plugin/context.ts";
import type { Commands, PluginCommand } from "../plugin/plugin.ts";
import { OutsideAsks } from "./asks.ts";
import { startChild } from "./child-process.ts";
import { atSocket, KeptOutside, type WayOutside } from "./guard.ts";
import { type Outside, outsideHooks, type ToldRequest } from "./hooks.ts";
import { OutsideLink, PluginFailure, type LentAnswers } from "./link.ts";
import { Stages } from "./stages.ts";
import { ToldRequests } from "./told-requests.ts";
import { type LockedModules, OUTSIDE_HOOKS, type OutsideHook } from "./what-crosses.ts";

/** Where a plugin is: code that a child imports, or a socket that another program answers. */
export type Place =
  | {
      readonly entry: string;
      readonly reads: readonly string[];
      readonly folder: string;
      /** The only files that it may load, with their hashes. Absent: the package is not locked. */
      readonly locked?: LockedModules | undefined;
    }
  | { readonly socket: string };

type Said = Readonly<Record<string, unknown>>;

const isMapping = (it: unknown): it is Said =>
  typeof it === "object" && it !== null && !Array.isArray(it);

/** A process is started, and imports what it runs. */
const DESCRIBE_MS = 29_000;
const COPIED = ["api", "since", "name", "summary", "stability", "unchecked", "sends", "options"];

/** Asks what it is. Rejects where it does not say. */
export async function describe(place: Place): Promise<unknown> {
  const lines: string[] = [];
  const reached = await reachOf(place, {
    env: {},
    said: (line) => lines.length < 5 && lines.push(line),
  })();
  let why = "";
  const link = new OutsideLink({
    stream: reached.stream,
    answers: {},
    heard: () => {},
    over: (how) => (why = how),
  });
  const late = setTimeout(() => link.end("it did not say in time what it is"), DESCRIBE_MS);
  try {
    const said = await link.ask(
      "describe",
      "entry" in place ? { entry: place.entry, locked: place.locked } : {},
    );
    return definitionOf(place, said);
  } catch (problem) {
    const more = lines.find((line) => /\w*Error/.test(line));
    throw why === "" || more === undefined ? problem : new PluginFailure(more);
  } finally {
    clearTimeout(late);
    link.end("it was asked");
    reached.kill();
  }
}

function reachOf(
  place: Place,
  of: {
    env: Readonly<Record<string, string>>;
    folder?: string;
    files?: readonly string[];
    said(line: string): void;
  },
): WayOutside {
  if ("socket" in place) return atSocket(place.socket);
  const { env, folder, said } = of;
  const reads = [...place.reads, ...(of.files ?? [])];
  return () => startChild({ reads, env, said, ...(folder !== undefined && { folder }) });
}

/** As a module's default export would be. */
function definitionOf(place: Place, said: unknown): object {
  if (!isMapping(said)) throw new PluginFailure("It does not say what it is.");
  const definition: Record<string, unknown> = {
    "~tollgate": said["kind"] ?? "middleware",
    "~outside": true,
  };
  for (const member of COPIED) if (said[member] !== undefined) definition[member] = said[member];
  const needs = said["needs"];
  if (needs !== undefined) definition["needs"] = needs;
  for (const [need, value] of Object.entries(isMapping(needs) ? needs : {}))
    if (value === "function")
      throw new PluginFailure(
        `Its needs.${need} are a function, which answers at once: outside the gateway they are a list. An option that its schema marks x-origin names an address.`,
      );
  return {
    ...definition,
    setup: (options: Said, ctx: Context) => begin(place, needs as Said | undefined, options, ctx),
  };
}

async function begin(
  place: Place,
  needs: Said | undefined,
  options: Said,
  ctx: Context,
): Promise<object> {
  const stages = new Stages();
  const told = new ToldRequests<ToldRequest>();
  const asks = new OutsideAsks((request, of) => ctx.ask(request, of), told);
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
  const guard = new KeptOutside({
    reach: reachOf(place, {
      env,
      files: "entry" in place ? files.map((file) => resolve(place.folder, file)) : [],
      ...(stateDir !== undefined && { folder: stateDir }),
      said: (line) => ctx.log.info({ line }, "a plugin outside wrote a line"),
    }),
    answers: lent(ctx, asks),
    heard(name, given) {
      if (name === "enough") asks.enough(given);
      else if (name === "over") told.take(String(isMapping(given) ? given["x"] : undefined));
      else heard(name, given, stages, ctx);
    },
    setup: (link) => link.ask("setup", setup),
    lost: (why, pauseMs) => {
      stages.lost();
      asks.lost();
      // The next one may have been told of requests already.
      for (const { x, link } of told.values()) if (link.over) told.take(x.id);
      ctx.log.warn({ why, again_ms: pauseMs }, "a plugin outside has ended, and is begun again");
    },
  });
  ctx.onDispose(() => guard.end());
  ctx.signal.addEventListener("abort", () => {
    const link = guard.link();
    if (!("then" in link)) link.tell("leave", undefined);
    else link.catch(() => {});
  });
  try {
    const said = await guard.first();
    return made(said, guard, { stages, told, echoes: "entry" in place });
  } catch (problem) {
    await guard.end();
    throw problem;
  }
}

function made(said: unknown, guard: KeptOutside, more: Omit<Outside, "link">): object {
  if (!isMapping(said) || !Array.isArray(said["hooks"]))
    return fail("invalid", "It does not say which hooks it has.");
  const other = (said["hooks"] as readonly unknown[]).find(
    (hook) => !OUTSIDE_HOOKS.includes(hook as OutsideHook),
  );
  if (other !== undefined)
    fail(
      "invalid",
      `its ${String(other).slice(0, 40)} cannot stand outside the gateway: ${OUTSIDE_HOOKS.join(", ")} and commands can`,
      { code: "not_outside" },
    );
  const of = { link: () => guard.link(), ...more };
  const hooks = outsideHooks(of, said["hooks"] as OutsideHook[]);
  const all = { ...hooks, ...commandsOf(said["commands"], guard) };
  return reportsOutage(all, () => guard.outage);
}

function commandsOf(said: unknown, guard: KeptOutside): Commands {
  if (!isMapping(said)) return {};
  const commands: Record<string, PluginCommand> = {};
  for (const [name, one] of Object.entries(said)) {
    if (!isMapping(one) || typeof one["summary"] !== "string")
      return fail("invalid", `its command ${name.slice(0, 40)} says nothing of itself`);
    const run = async (input: JsonObject): Promise<Json> => {
      const link = await guard.link();
      return (await link.ask("command", { name, input })) as Json;
    };
    commands[name] = { ...(one as unknown as PluginCommand), run };
  }
  return { commands };
}

/** What the context lends to a plugin that is elsewhere. Each is the context's own, with its own rules. */
const lent = (ctx: Context, asks: OutsideAsks): LentAnswers => ({
  ask: (said: unknown) => asks.ask(said),
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
  key: (secret: unknown) => ctx.keys.find(String(secret)),
  readFile: async (path: unknown) => (await ctx.readFile(String(path))).toString("base64"),
});

const LEVELS: ReadonlySet<unknown> = new Set(["debug", "info", "warn", "error"]);
let logged = { at: 0, lines: 0 };
/** Of all plugins outside, in a second. */
const MOST_LINES = 200;

function heard(name: string, given: unknown, stages: Stages, ctx: Context): void {
  if (name === "events" || name === "stop") return stages.heard(name, given);
  if (name !== "log" || !isMapping(given)) throw new Error("unknown");
  const now = performance.now();
  if (now - logged.at > 1_000) logged = { at: now, lines: 0 };
  if (++logged.lines > MOST_LINES) return;
  const { level, fields, message } = given;
  const text = JSON.stringify(fields ?? {});
  if (!LEVELS.has(level)) throw new Error("no level");
  ctx.log[level as "info"](
    isMapping(fields) && text.length <= 4_000 ? fields : {},
    String(message).slice(0, 1_000),
  );
}
