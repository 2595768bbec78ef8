// What every command needs: which package this is, which file is meant, where plugins come from.
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parse } from "yaml";
import { builtin } from "../../plugins/index.ts";
import { defaultText, packageRoot } from "../config/default.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { GatewayConfig, LoadPlugin } from "../config/types.ts";
import { createLog, type Log } from "../lib/log.ts";
import { Mask } from "../lib/mask.ts";
import { fail } from "../model/error.ts";
import type { PluginKind } from "../plugin/define.ts";
import type { CliInput } from "./command.ts";
import { lentModules } from "./lent-modules.ts";

const manifest = JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8")) as {
  version: string;
};
export const version: string = manifest.version;

type Imports = Readonly<Record<string, () => Promise<unknown>>>;
export const builtins: Readonly<Record<PluginKind, Imports>> = builtin;

/** The file that was named, or the one that is here; undefined: what ships with the package. */
export function configFile(given: CliInput): string | undefined {
  const named = given.text("config");
  if (named !== undefined) return resolve(named);
  return existsSync("gateway.yaml") ? resolve("gateway.yaml") : undefined;
}

/** How the file is called in a sentence. */
export const nameOf = (file: string | undefined): string => file ?? "the default config";

/** `use` → definition. What comes with us is imported at once; the loader is, when something else is named. */
export function createLoad({ dev = false } = {}): LoadPlugin {
  let others: Promise<LoadPlugin> | undefined;
  return async (use, kind, fromFile, trust, isolate) => {
    const ours = builtins[kind as PluginKind];
    if (Object.hasOwn(ours, use) && !isolate) {
      const { default: definition } = (await ours[use]!()) as { default: unknown };
      return { definition, from: "built-in" };
    }
    return (await (others ??= createOtherLoad(dev)))(use, kind, fromFile, trust, isolate);
  };
}

async function createOtherLoad(dev: boolean): Promise<LoadPlugin> {
  const { createLoader } = await import("../loader/load.ts");
  const types = dev ? (await import("../loader/typed.ts")).typesBeside : undefined;
  return createLoader({ builtin: builtins, host: await lentModules(), ...(types && { types }) });
}

export async function load(
  file: string | undefined,
  of: { load?: LoadPlugin; text?: string } = {},
): Promise<LoadedConfig> {
  const { loadConfig } = await import("../config/load.ts");
  return loadConfig(file ?? resolve("gateway.yaml"), {
    env: process.env,
    load: of.load ?? createLoad(),
    ...(file === undefined && { text: defaultText() }),
    ...(of.text !== undefined && { text: of.text }),
  });
}

/** A log for commands that are no daemon: on stderr, and only what went wrong. */
export function quietLog(): { log: Log; mask: Mask } {
  const mask = new Mask();
  const write = (line: string) => void process.stderr.write(line);
  return { log: createLog({ level: "warn", pretty: true, mask, write }), mask };
}

/** Where a running gateway is met. A file with errors, or without its variables, still says it. */
export async function stateDirOf(given: CliInput): Promise<string> {
  const named = given.text("state-dir");
  if (named !== undefined) return resolve(named);
  const file = configFile(given);
  const plain = plainStateDir(
    file === undefined ? defaultText() : await readFile(file, "utf8").catch(missing),
  );
  if (plain !== undefined) return resolve(dirname(file ?? resolve("gateway.yaml")), plain);
  const { config } = await load(file);
  return (config ?? unsure(file)).stateDir;
}

const missing = (error: NodeJS.ErrnoException): never =>
  fail("not_found", `${error.path} cannot be read: ${error.code}.`, { code: "no_file" });

const unsure = (file: string | undefined): GatewayConfig =>
  fail(
    "invalid",
    `${nameOf(file)} has errors, see tollgate check. Say where the gateway is with --state-dir.`,
  );

/** Undefined: only the whole config knows. */
function plainStateDir(text: string): string | undefined {
  try {
    const said = parse(text, { logLevel: "silent" }) as Record<string, unknown> | null;
    const folder = said?.["state_dir"];
    if (folder === undefined) return said?.["include"] === undefined ? ".tollgate" : undefined;
    return typeof folder === "string" && !folder.includes("$") ? folder : undefined;
  } catch {
    return undefined;
  }
}
