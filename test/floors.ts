// Who may import whom, as data, and a judge of one file's imports. The test beside it reads the tree.
import { dirname, join, normalize } from "node:path/posix";

const ALL = "lib model money catalogue plugin protocols config loader walk gateway".split(" ");

/** What a floor may import of ours. `types:` = only as types, which leave nothing behind at run time. */
export const FLOORS: { readonly [floor: string]: readonly string[] } = {
  lib: [],
  model: ["lib"],
  money: ["lib", "model"],
  plugin: ["lib", "model"],
  catalogue: ["lib", "model", "money", "plugin"],
  protocols: ["lib", "model", "plugin"],
  config: ["lib", "model", "money", "catalogue", "plugin"],
  loader: ["lib", "model", "plugin", "config"],
  walk: "lib model money catalogue plugin protocols types:config".split(" "),
  gateway: "lib model money catalogue plugin protocols config walk types:loader".split(" "),
  // The kit runs what it judges in a real gateway.
  testing: ["lib", "model", "plugin", "protocols", "gateway"],
  cli: [...ALL, "builtin", "index"],
  index: [...ALL, "builtin"],
};

/** Libraries that belong to one job; the floor that does the job may know them. */
export const LIBRARIES: { readonly [name: string]: readonly string[] } = {
  h3: ["gateway"],
  listhen: ["gateway"],
  jiti: ["loader"],
  yaml: ["config", "cli"],
  ajv: ["config", "gateway", "testing"],
  pino: ["lib"],
  undici: ["lib", "walk", "gateway"],
};

export interface Import {
  readonly from: string;
  readonly typeOnly: boolean;
}

/** Every module a source names: static and dynamic imports, and re-exports. */
export function importsOf(source: string): Import[] {
  const code = source.replace(/^\s*(\/\/|\*|\/\*).*$/gm, "");
  const found: Import[] = [];
  const statement = /^\s*(?:import|export)\s+(type\s+)?(?:([^;"']*?)\s+from\s+)?["']([^"']+)["']/gm;
  for (const [, type, names, from] of code.matchAll(statement)) {
    const inner = /^\{([^}]*)\}$/.exec(names?.trim() ?? "")?.[1];
    const named = inner
      ?.split(",")
      .map((name) => name.trim())
      .filter(Boolean);
    const allTypes =
      named !== undefined && named.length > 0 && named.every((n) => n.startsWith("type "));
    found.push({ from: from!, typeOnly: type !== undefined || allTypes });
  }
  for (const [, from] of code.matchAll(/\bimport\(\s*["']([^"']+)["']/g))
    found.push({ from: from!, typeOnly: false });
  return found;
}

const floorOf = (path: string): string => {
  const parts = path.split("/");
  if (parts[0] === "plugins") return "builtin";
  return parts.length > 2 ? parts[1]! : parts[1]!.replace(/\.ts$/, "");
};

/** Why a file of `src` may not import this; undefined when it may. */
export function upward(file: string, { from, typeOnly }: Import): string | undefined {
  const floor = floorOf(file);
  const may = FLOORS[floor];
  if (!may) return `${file} stands on no floor`;
  if (from.startsWith("node:")) return undefined;
  if (!from.startsWith(".")) {
    const name = packageOf(from);
    if (name === "tollgate") return `${file} imports ${from}: inside, files are named by path`;
    const floors = LIBRARIES[name];
    return !floors || floors.includes(floor) || typeOnly
      ? undefined
      : `${file} imports ${name}, which belongs to ${floors.join(" and ")}`;
  }
  const target = normalize(join(dirname(file), from));
  if (target.endsWith(".json")) return undefined;
  if (!target.endsWith(".ts")) return `${file} imports ${from} without its extension`;
  const to = floorOf(target);
  if (to === floor || may.includes(to)) return undefined;
  if (typeOnly && may.includes(`types:${to}`)) return undefined;
  return `${file} imports ${target}: ${floor} may not import ${to}${may.includes(`types:${to}`) ? ", but its types" : ""}`;
}

/** Why a built-in plugin may not import this. `own`: the packages that its folder declares. */
export function foreign(
  file: string,
  { from, typeOnly }: Import,
  own: readonly string[],
): string | undefined {
  if (from.startsWith("node:") || from === "tollgate/plugin") return undefined;
  if (/^tollgate\/protocols\/[a-z-]+$/.test(from)) return undefined;
  if (!from.startsWith(".")) {
    const known = own.includes(packageOf(from)) || (typeOnly && from === "json-schema-to-ts");
    return known ? undefined : `${file} imports ${from}, which its folder does not declare`;
  }
  const target = normalize(join(dirname(file), from));
  // plugins/<kind>/…: neighbours of one kind may share what only they need.
  const kind = file.split("/").slice(0, 2).join("/");
  return target.startsWith(`${kind}/`)
    ? undefined
    : `${file} imports ${target}: a plugin knows tollgate/plugin, tollgate/protocols/* and its own folder`;
}

export const packageOf = (from: string): string =>
  from
    .split("/")
    .slice(0, from.startsWith("@") ? 2 : 1)
    .join("/");
