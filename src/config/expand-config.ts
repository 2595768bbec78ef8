// Expands a validated config to its long form: short forms become maps, and defaults are filled in.
// The config is built from this form, and `tollgate print` shows it.
import { dirname, resolve } from "node:path";
import { CONFIG_SCHEMA } from "./schema/config-schema.ts";
import { getValidator } from "./schema-dialect.ts";
import { expandAdmin } from "./sections/admin-config.ts";
import { expandListen } from "./sections/listen-config.ts";
import { candidateReferences } from "./name-references.ts";
import {
  childPointer,
  isMapping,
  type Mapping,
  pointerSegments,
  valueAt,
} from "./source/config-tree.ts";

/** Values that the command line overrides. */
export interface ConfigOverrides {
  readonly host?: string;
  readonly port?: number;
  /** Port of the admin listener, if the config has one. */
  readonly adminPort?: number;
  /** Absolute path of the state directory. */
  readonly stateDir?: string;
  readonly logLevel?: "debug" | "info" | "warn" | "error";
  readonly workers?: number | "auto";
}

export interface ExpandedConfig {
  readonly root: Mapping;
  /** Pointers in the file of values that are elsewhere in the long form. */
  readonly movedFrom: ReadonlyMap<string, string>;
}

/**
 * @param fileOf Returns the absolute path of the file that contains a value. Paths are relative to it.
 */
export function expandConfig(
  root: Mapping,
  overrides: ConfigOverrides,
  fileOf: (pointer: string) => string,
): ExpandedConfig {
  const movedFrom = new Map<string, string>();
  const long = { ...root, ...expandSections(root, movedFrom, overrides) };
  const { value, paths } = getValidator(CONFIG_SCHEMA)(long);
  const filled = value as Mapping;
  for (const pointer of paths) {
    const parent = valueAt(filled, pointer.slice(0, pointer.lastIndexOf("/"))) as Mapping;
    const key = pointerSegments(pointer).at(-1)!;
    parent[key] = resolve(dirname(fileOf(pointer)), parent[key] as string);
  }
  return { root: filled, movedFrom };
}

function expandSections(
  root: Mapping,
  movedFrom: Map<string, string>,
  overrides: ConfigOverrides,
): Mapping {
  const useOf = (entry: unknown, pointer: string, usual?: string): unknown => {
    if (typeof entry === "string") movedFrom.set(childPointer(pointer, "use"), pointer);
    const long: Mapping = typeof entry === "string" ? { use: entry } : ((entry ?? {}) as Mapping);
    return usual === undefined ? long : { use: usual, ...long };
  };
  const listOf = (key: string) =>
    (root[key] as unknown[]).map((entry, i) => useOf(entry, childPointer(`/${key}`, i)));
  const mapOf = (key: string, expand: (entry: unknown, pointer: string, name: string) => unknown) =>
    Object.fromEntries(
      Object.entries(root[key] as Mapping).map(([name, entry]) => [
        name,
        expand(entry, childPointer(`/${key}`, name), name),
      ]),
    );
  const { shutdown } = root;
  if (!isMapping(shutdown)) movedFrom.set("/shutdown/timeout", "/shutdown");
  return {
    listen: expandListen(root["listen"], overrides),
    ...(root["admin"] !== undefined && { admin: expandAdmin(root["admin"], overrides) }),
    ...(overrides.stateDir !== undefined && { state_dir: overrides.stateDir }),
    ...(overrides.workers !== undefined && { workers: overrides.workers }),
    ...(overrides.logLevel !== undefined && {
      log: { ...(root["log"] as Mapping), level: overrides.logLevel },
    }),
    shutdown: isMapping(shutdown) ? shutdown : { timeout: shutdown },
    store: useOf(root["store"], "/store"),
    frontends: listOf("frontends"),
    middleware: listOf("middleware"),
    observers: listOf("observers"),
    providers: mapOf("providers", useOf),
    models: mapOf("models", (route, pointer) => expandRoute(route, pointer, movedFrom)),
  };
}

function expandRoute(route: unknown, pointer: string, movedFrom: Map<string, string>): Mapping {
  const candidates = candidateReferences(route, pointer).map(
    ({ name, weight, pointer: from }, i) => {
      const at = childPointer(childPointer(pointer, "candidates"), i);
      movedFrom.set(weight === undefined ? at : childPointer(at, "model"), from);
      return weight === undefined ? name : { model: name, weight };
    },
  );
  return { ...(isMapping(route) ? route : {}), candidates };
}
