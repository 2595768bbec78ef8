// Shared by all commands: package version, config file, and plugin loader.
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parse } from "yaml";
import { builtin } from "../../../plugins/index.ts";
import { readDefaultConfig, findPackageRoot } from "../../lib/package-root.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { GatewayConfig, LoadPlugin } from "../../config/gateway-config.ts";
import { createLog, type Log } from "../../lib/log/log.ts";
import { SecretMask } from "../../lib/log/secret-mask.ts";
import { fail } from "../../model/error.ts";
import type { PluginKind } from "../../plugin/define.ts";
import type { CliInput } from "./command.ts";
import { createSharedModules } from "./shared-modules.ts";

const manifest = JSON.parse(readFileSync(join(findPackageRoot(), "package.json"), "utf8")) as {
  version: string;
};
export const version: string = manifest.version;

type Imports = Readonly<Record<string, () => Promise<unknown>>>;
export const builtinPlugins: Readonly<Record<PluginKind, Imports>> = builtin;

/**
 * Returns the named file, or the config file in the current directory. Returns undefined for the
 * default config.
 */
export function configFile(given: CliInput): string | undefined {
  const named = given.getText("config");
  if (named !== undefined) return resolve(named);
  return existsSync("gateway.yaml") ? resolve("gateway.yaml") : undefined;
}

/** Returns the file's name for messages. */
export const configName = (file: string | undefined): string => file ?? "the default config";

/**
 * Creates the function that loads the definition for a `use` name. Built-in plugins are imported
 * directly. The loader is imported only for other plugins.
 */
export function createPluginLoader({ dev = false } = {}): LoadPlugin {
  let others: Promise<LoadPlugin> | undefined;
  return async (use, kind, fromFile, trust, isolate) => {
    const ours = builtinPlugins[kind as PluginKind];
    if (Object.hasOwn(ours, use) && !isolate) {
      const { default: definition } = (await ours[use]!()) as { default: unknown };
      return { definition, from: "built-in", isBuiltIn: true };
    }
    return (await (others ??= createExternalLoader(dev)))(use, kind, fromFile, trust, isolate);
  };
}

async function createExternalLoader(dev: boolean): Promise<LoadPlugin> {
  const { createLoader } = await import("../../loader/plugin-loader.ts");
  const types = dev ? (await import("../../loader/typecheck.ts")).typecheckPlugin : undefined;
  return createLoader({
    builtin: builtinPlugins,
    hostModules: await createSharedModules(),
    ...(types && { checkTypes: types }),
  });
}

export async function loadGatewayConfig(
  file: string | undefined,
  of: { load?: LoadPlugin; text?: string } = {},
): Promise<LoadedConfig> {
  const { loadConfig } = await import("../../config/load-config.ts");
  return loadConfig(file ?? resolve("gateway.yaml"), {
    env: process.env,
    loadPlugin: of.load ?? createPluginLoader(),
    ...(file === undefined && { textOverride: readDefaultConfig() }),
    ...(of.text !== undefined && { textOverride: of.text }),
  });
}

/** Creates a log for short-lived commands, which writes only errors to stderr. */
export function quietLog(): { log: Log; mask: SecretMask } {
  const mask = new SecretMask();
  const write = (line: string) => void process.stderr.write(line);
  return { log: createLog({ level: "warn", pretty: true, mask, write }), mask };
}

/**
 * Returns the state directory, which is used to find a running gateway. It also works for a file
 * with errors or unset variables.
 */
export async function findStateDir(given: CliInput): Promise<string> {
  const named = given.getText("state-dir");
  if (named !== undefined) return resolve(named);
  const file = configFile(given);
  const plain = stateDirFromText(
    file === undefined ? readDefaultConfig() : await readFile(file, "utf8").catch(failNoFile),
  );
  if (plain !== undefined) return resolve(dirname(file ?? resolve("gateway.yaml")), plain);
  const { config } = await loadGatewayConfig(file);
  return (config ?? failInvalidConfig(file, ", or pass the gateway's --state-dir")).stateDir;
}

const failNoFile = (error: NodeJS.ErrnoException): never =>
  fail("not_found", `Cannot read ${error.path}: ${error.code}.`, { code: "no_file" });

/** @param hint Another way to run the command. */
export const failInvalidConfig = (file: string | undefined, hint = ""): never =>
  fail("invalid", `${configName(file)} has errors. Run tollgate check for details${hint}.`);

/** Loads a config, and throws if it has errors. */
export async function requireGatewayConfig(
  file: string | undefined,
): Promise<{ readonly loaded: LoadedConfig; readonly config: GatewayConfig }> {
  const loaded = await loadGatewayConfig(file);
  return { loaded, config: loaded.config ?? failInvalidConfig(file) };
}

/** Returns undefined if the directory depends on the whole config. */
function stateDirFromText(text: string): string | undefined {
  try {
    const config = parse(text, { logLevel: "silent" }) as Record<string, unknown> | null;
    const folder = config?.["state_dir"];
    if (folder === undefined) return config?.["include"] === undefined ? ".tollgate" : undefined;
    return typeof folder === "string" && !folder.includes("$") ? folder : undefined;
  } catch {
    return undefined;
  }
}
