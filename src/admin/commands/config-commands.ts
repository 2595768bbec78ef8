// Commands to read and check the config remotely: the current values with their sources, and the
// effect of another config text. A check runs no code of unmounted plugins, reads no file that the
// running config does not read, and uses no secret. Error messages quote invalid values, so a
// crafted config text could otherwise disclose a secret.
import { resolve } from "node:path";
import { type LoadedConfig, loadConfig } from "../../config/load-config.ts";
import type { ShownValue } from "../../config/show-config.ts";
import type {
  GatewayConfig,
  LoadPlugin,
  LocatedProblem,
  MountConfig,
} from "../../config/gateway-config.ts";
import type { SecretMask } from "../../lib/log/secret-mask.ts";
import type { PluginKind } from "../../plugin/define.ts";
import type { LiveGeneration } from "../../runtime/generation/generation-slot.ts";
import type { ConfigSource } from "../../runtime/reload/read-config.ts";
import { RESTART_PATHS } from "../../runtime/reload/reload-rules.ts";
import { withInputChecks } from "../dispatch/command-input.ts";

/** Result of `config.show`. */
export interface ShownConfig {
  /** Path of gateway.yaml. Null if the config that ships with the package is used. */
  readonly file: string | null;
  readonly generation: number;
  readonly loadedAt: number;
  readonly shownValues: readonly ShownValue[];
  /** Equivalent YAML, without secrets. */
  readonly text: string;
}

/** Result of `config.check`. */
export interface CheckedConfig {
  readonly ok: boolean;
  readonly problems: readonly LocatedProblem[];
  /** Differences from the running config. Secrets are not compared. Empty if there are errors. */
  readonly changes: readonly ConfigChange[];
  /** Number of changes that are not listed. */
  readonly omittedChanges: number;
  /** Changed top-level keys that a reload rejects because they require a restart. */
  readonly restartKeys: readonly string[];
  /** Variables that are set but whose values were not used. */
  readonly assumedVariables: readonly string[];
}

export interface ConfigChange {
  readonly path: string;
  /** Unset if the value is new. */
  readonly before?: ShownValue["value"];
  /** Unset if the value is removed. */
  readonly after?: ShownValue["value"];
}

const MAX_CHANGES = 2_000;
const VARIABLE_REFERENCE = /\$\{env:([A-Za-z_]\w*)/g;
/**
 * Values that exclude a provider through `when:`. These values are not replaced by a placeholder.
 */
const OFF_VALUES = new Set(["", "false", "0"]);

export interface ConfigCommandsOptions extends Pick<
  ConfigSource,
  "configFile" | "overrides" | "loadPlugin"
> {
  /** Whether the plugin ships with the gateway. */
  readonly isBuiltin?: (use: string, kind: PluginKind) => boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly mask: Pick<SecretMask, "maskValue">;
  readonly current: () => Pick<LiveGeneration, "built" | "config" | "loaded" | "loadedAt">;
}

export function createConfigCommands(options: ConfigCommandsOptions) {
  return withInputChecks({
    "config.show": async (): Promise<ShownConfig> => {
      const { built, loaded, loadedAt } = options.current();
      return {
        file: options.configFile ?? null,
        generation: built.gen.number,
        loadedAt,
        shownValues: loaded.shownValues(),
        text: loaded.print(),
      };
    },
    "config.check": async ({ text }): Promise<CheckedConfig> => {
      const { config, loaded } = options.current();
      const assumed: string[] = [];
      const found = await loadConfig(resolve(options.configFile ?? "gateway.yaml"), {
        textOverride: text,
        env: substituteVariables(text, loaded, options.env, assumed),
        recordedTexts: textsOf(loaded),
        placeholder: PLACEHOLDER,
        loadPlugin: createMountedOnlyLoader(config, options),
        ...(options.overrides && { overrides: options.overrides }),
      });
      const changes = found.config ? diffValues(loaded.shownValues(), found.shownValues()) : [];
      return options.mask.maskValue({
        ok: found.config !== undefined,
        problems: found.problems.map(hideFilePath),
        changes: changes.slice(0, MAX_CHANGES),
        omittedChanges: Math.max(0, changes.length - MAX_CHANGES),
        restartKeys: restartKeysOf(changes, config, found.config),
        assumedVariables: assumed,
      }) as CheckedConfig;
    },
  });
}

/**
 * Returns the changed top-level keys that require a restart. The changed paths are used instead of
 * a comparison of configs, because the checked config has placeholders for secrets.
 */
function restartKeysOf(
  changes: readonly ConfigChange[],
  config: Pick<GatewayConfig, "admin">,
  checked: Pick<GatewayConfig, "admin"> | undefined,
): string[] {
  const keys = changes.flatMap(({ path }) =>
    RESTART_PATHS.filter(
      (key) => path.startsWith(key) && /^(?:$|[.[])/.test(path.slice(key.length)),
    ).map((key) => key.split(".", 1)[0]!),
  );
  const addsAdmin = checked && (config.admin === undefined) !== (checked.admin === undefined);
  return [...new Set(addsAdmin ? [...keys, "admin"] : keys)];
}

/** Suffix of each placeholder. */
const PLACEHOLDER = "which-is-not-looked-at";

/**
 * Returns the values of the variables that the text names. Variables that the running config shows
 * keep their value. The others get a placeholder.
 */
function substituteVariables(
  text: string,
  { namedSources }: LoadedConfig,
  env: ConfigCommandsOptions["env"],
  assumed: string[],
): Record<string, string> {
  const substituted: Record<string, string> = {};
  for (const name of new Set([...text.matchAll(VARIABLE_REFERENCE)].map(([, each]) => each!))) {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) continue;
    const shown =
      namedSources.publicVariables.has(name) || OFF_VALUES.has(value.trim().toLowerCase());
    if (!shown) assumed.push(name);
    substituted[name] = shown ? value : `the-value-of-${name}-${PLACEHOLDER}`;
  }
  return substituted;
}

const textsOf = ({ texts, namedSources }: LoadedConfig): ReadonlyMap<string, string> =>
  new Map(
    [...texts].map(([file, text]) => [
      file,
      namedSources.files.has(file) ? `the-text-of-${file}-${PLACEHOLDER}` : text,
    ]),
  );

/** Returns a loader that loads only plugins that are mounted or ship with the gateway. */
function createMountedOnlyLoader(
  config: GatewayConfig,
  { loadPlugin, isBuiltin = () => false }: ConfigCommandsOptions,
): LoadPlugin {
  const mounted = new Map<string, MountConfig<unknown>>();
  const add = (kind: PluginKind, one: MountConfig<unknown>) =>
    mounted.set(`${kind} ${one.use}`, one);
  add("store", config.store);
  for (const one of config.frontends) add("frontend", one);
  for (const one of config.middleware) add("middleware", one);
  for (const one of config.observers) add("observer", one);
  for (const one of config.providers.values()) add("provider", one);
  return async (use, kind, fromFile) => {
    if (isBuiltin(use, kind)) return loadPlugin(use, kind, fromFile);
    const one = mounted.get(`${kind} ${use}`);
    if (one) return { definition: one.definition, from: one.loadedFrom, isBuiltIn: one.isBuiltIn };
    return {
      problem: {
        id: "plugin/not-loaded",
        message: `${JSON.stringify(use)} is not in use now, and a remote check does not load code`,
        hint: "run tollgate check on the gateway's machine",
      },
    };
  };
}

const hideFilePath = (problem: LocatedProblem): LocatedProblem =>
  problem.id === "config/file-missing"
    ? { ...problem, hint: "a remote check reads only files that the running config uses" }
    : problem;

function diffValues(
  before: readonly ShownValue[],
  after: readonly ShownValue[],
): readonly ConfigChange[] {
  const were = new Map(before.map(({ path, value }) => [path, value]));
  const changes: ConfigChange[] = [];
  for (const { path, value } of after) {
    const was = were.get(path);
    if (!were.has(path)) changes.push({ path, after: value });
    else if (was !== value) changes.push({ path, before: was!, after: value });
    were.delete(path);
  }
  for (const [path, was] of were) changes.push({ path, before: was });
  return changes;
}
