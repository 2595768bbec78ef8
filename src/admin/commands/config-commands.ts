// The config, as an operator reads it from afar: what runs and where each value comes from, and what another text would be. A check
// runs no code that is not mounted already, reads no file that the running config does not read, and looks at no secret: its
// sentences quote what is wrong, and so a text could be written that quotes one.
import { resolve } from "node:path";
import { type LoadedConfig, loadConfig } from "../../config/load-config.ts";
import type { ShownValue } from "../../config/shown-values.ts";
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
import { withInputChecks } from "../dispatch/command-input.ts";

/** The answer of `config.show`. */
export interface ShownConfig {
  /** null: what ships with the package. */
  readonly file: string | null;
  readonly generation: number;
  readonly loadedAt: number;
  readonly shownValues: readonly ShownValue[];
  /** As YAML that means the same, secrets apart. */
  readonly text: string;
}

/** The answer of `config.check`. */
export interface CheckedConfig {
  readonly ok: boolean;
  readonly problems: readonly LocatedProblem[];
  /** Against what runs; secrets are not compared. None where there are errors. */
  readonly changes: readonly ConfigChange[];
  /** Changes beyond those. */
  readonly omittedChanges: number;
  /** Top-level keys that a reload would refuse: they need a restart. */
  readonly restartKeys: readonly string[];
  /** Variables that are set, and were not looked at. */
  readonly assumedVariables: readonly string[];
}

export interface ConfigChange {
  readonly path: string;
  /** Absent: it was not there. */
  readonly before?: ShownValue["value"];
  /** Absent: it goes. */
  readonly after?: ShownValue["value"];
}

const MAX_CHANGES = 2_000;
/** What `staticKeys` compares, as paths say it. */
const RESTART_KEYS = /^(listen|workers|state_dir|store|admin(?!\.tokens))\b/;
const VARIABLE_REFERENCE = /\$\{env:([A-Za-z_]\w*)/g;
/** What leaves a provider out stays what it is. */
const OFF_VALUES = new Set(["", "false", "0"]);

export interface ConfigCommandsOptions extends Pick<
  ConfigSource,
  "configFile" | "overrides" | "loadPlugin"
> {
  /** Whether the gateway comes with this plugin. */
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
        restartKeys: [
          ...new Set(changes.flatMap(({ path }) => RESTART_KEYS.exec(path)?.slice(1, 2) ?? [])),
        ],
        assumedVariables: assumed,
      }) as CheckedConfig;
    },
  });
}

/** At the end of each value in whose place something else is. */
const PLACEHOLDER = "which-is-not-looked-at";

/** Those that the text names: as they are where the running config shows them too, and something in their place elsewhere. */
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

/** Code that runs already, or comes with the program. */
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
    if (one) return { definition: one.definition, from: one.loadedFrom };
    return {
      problem: {
        id: "plugin/not-loaded",
        message: `${JSON.stringify(use)} is not mounted now, and a check from afar loads no code`,
        hint: "tollgate check, on the machine itself, loads it",
      },
    };
  };
}

const hideFilePath = (problem: LocatedProblem): LocatedProblem =>
  problem.id === "config/file-missing"
    ? { ...problem, hint: "a check reads only the files that the running config reads" }
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
