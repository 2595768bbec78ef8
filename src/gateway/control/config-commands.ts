// The config, as an operator reads it from afar: what runs and where each value comes from, and what another text would be. A check
// runs no code that is not mounted already, reads no file that the running config does not read, and looks at no secret: its
// sentences quote what is wrong, and so a text could be written that quotes one.
import { resolve } from "node:path";
import { type LoadedConfig, loadConfig } from "../../config/load.ts";
import type { ShownValue } from "../../config/provenance.ts";
import type { GatewayConfig, LoadPlugin, Located, MountConfig } from "../../config/types.ts";
import type { Mask } from "../../lib/mask.ts";
import type { PluginKind } from "../../plugin/define.ts";
import type { LiveGeneration } from "../generation/slot.ts";
import type { GatewayOptions } from "../options.ts";
import { answering } from "./input.ts";

/** The answer of `config.show`. */
export interface ShownConfig {
  /** null: what ships with the package. */
  readonly file: string | null;
  readonly generation: number;
  readonly loadedAt: number;
  readonly values: readonly ShownValue[];
  /** As YAML that means the same, secrets apart. */
  readonly text: string;
}

/** The answer of `config.check`. */
export interface CheckedConfig {
  readonly ok: boolean;
  readonly problems: readonly Located[];
  /** Against what runs; secrets are not compared. None where there are errors. */
  readonly changes: readonly ConfigChange[];
  /** Changes beyond those. */
  readonly more: number;
  /** Top-level keys that a reload would refuse: they need a restart. */
  readonly restart: readonly string[];
  /** Variables that are set, and were not looked at. */
  readonly assumed: readonly string[];
}

export interface ConfigChange {
  readonly path: string;
  /** Absent: it was not there. */
  readonly was?: ShownValue["value"];
  /** Absent: it goes. */
  readonly becomes?: ShownValue["value"];
}

const CHANGES = 2_000;
/** What `staticKeys` compares, as paths say it. */
const RESTART = /^(listen|workers|state_dir|store|admin(?!\.tokens))\b/;
const VARIABLES = /\$\{env:([A-Za-z_]\w*)/g;
/** What leaves a provider out stays what it is. */
const OFF = new Set(["", "false", "0"]);

export interface ConfigCommandsOf extends Pick<
  GatewayOptions,
  "file" | "overrides" | "load" | "isBuiltin"
> {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly mask: Pick<Mask, "value">;
  readonly current: () => Pick<LiveGeneration, "built" | "config" | "loaded" | "at">;
}

export function configCommands(of: ConfigCommandsOf) {
  return answering({
    "config.show": async (): Promise<ShownConfig> => {
      const { built, loaded, at } = of.current();
      return {
        file: of.file ?? null,
        generation: built.gen.number,
        loadedAt: at,
        values: loaded.values(),
        text: loaded.print(),
      };
    },
    "config.check": async ({ text }): Promise<CheckedConfig> => {
      const { config, loaded } = of.current();
      const assumed: string[] = [];
      const found = await loadConfig(resolve(of.file ?? "gateway.yaml"), {
        text,
        env: variables(text, loaded, of.env, assumed),
        texts: textsOf(loaded),
        standIn: STAND_IN,
        load: mountedOnly(config, of),
        ...(of.overrides && { overrides: of.overrides }),
      });
      const changes = found.config ? differences(loaded.values(), found.values()) : [];
      return of.mask.value({
        ok: found.config !== undefined,
        problems: found.problems.map(told),
        changes: changes.slice(0, CHANGES),
        more: Math.max(0, changes.length - CHANGES),
        restart: [...new Set(changes.flatMap(({ path }) => RESTART.exec(path)?.slice(1, 2) ?? []))],
        assumed,
      }) as CheckedConfig;
    },
  });
}

/** At the end of each value in whose place something else is. */
const STAND_IN = "which-is-not-looked-at";

/** Those that the text names: as they are where the running config shows them too, and something in their place elsewhere. */
function variables(
  text: string,
  { named }: LoadedConfig,
  env: ConfigCommandsOf["env"],
  assumed: string[],
): Record<string, string> {
  const seen: Record<string, string> = {};
  for (const name of new Set([...text.matchAll(VARIABLES)].map(([, each]) => each!))) {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) continue;
    const shown = named.open.has(name) || OFF.has(value.trim().toLowerCase());
    if (!shown) assumed.push(name);
    seen[name] = shown ? value : `the-value-of-${name}-${STAND_IN}`;
  }
  return seen;
}

const textsOf = ({ texts, named }: LoadedConfig): ReadonlyMap<string, string> =>
  new Map(
    [...texts].map(([file, text]) => [
      file,
      named.files.has(file) ? `the-text-of-${file}-${STAND_IN}` : text,
    ]),
  );

/** Code that runs already, or comes with the program. */
function mountedOnly(
  config: GatewayConfig,
  { load, isBuiltin = () => false }: ConfigCommandsOf,
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
    if (isBuiltin(use, kind)) return load(use, kind, fromFile);
    const one = mounted.get(`${kind} ${use}`);
    if (one) return { definition: one.definition, from: one.from };
    return {
      problem: {
        id: "plugin/not-loaded",
        message: `${JSON.stringify(use)} is not mounted now, and a check from afar loads no code`,
        hint: "tollgate check, on the machine itself, loads it",
      },
    };
  };
}

const told = (problem: Located): Located =>
  problem.id === "config/file-missing"
    ? { ...problem, hint: "a check reads only the files that the running config reads" }
    : problem;

function differences(
  before: readonly ShownValue[],
  after: readonly ShownValue[],
): readonly ConfigChange[] {
  const were = new Map(before.map(({ path, value }) => [path, value]));
  const changes: ConfigChange[] = [];
  for (const { path, value } of after) {
    const was = were.get(path);
    if (!were.has(path)) changes.push({ path, becomes: value });
    else if (was !== value) changes.push({ path, was: was!, becomes: value });
    were.delete(path);
  }
  for (const [path, was] of were) changes.push({ path, was });
  return changes;
}
