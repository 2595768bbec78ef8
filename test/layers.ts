// The layers of `src`, and checks of a file's imports. The test next to it reads the tree.
import { dirname, join, normalize } from "node:path/posix";

/**
 * The layers from bottom to top, and the layers that each may import. `types:` means types only,
 * which do not exist at run time.
 */
export const LAYERS: { readonly [layer: string]: readonly string[] } = {
  lib: [],
  model: ["lib"],
  money: ["lib", "model"],
  plugin: ["lib", "model"],
  store: ["lib", "model", "plugin"],
  catalog: ["lib", "model", "money", "plugin"],
  protocols: ["lib", "model", "plugin"],
  config: ["lib", "model", "money", "catalog", "plugin"],
  isolation: ["lib", "model", "plugin", "config"],
  loader: ["lib", "model", "plugin", "config", "isolation"],
  pipeline: "lib model money catalog plugin protocols types:config".split(" "),
  runtime: "lib model money catalog plugin config pipeline types:loader".split(" "),
  admin: "lib model money catalog plugin protocols config pipeline runtime".split(" "),
  server: "lib model money catalog plugin config pipeline runtime admin".split(" "),
  // The plugin test kit runs a plugin in a real gateway.
  testing: ["lib", "model", "plugin", "protocols", "admin", "server", "builtin"],
  cli: "lib model money catalog plugin store config isolation loader runtime admin server testing builtin".split(
    " ",
  ),
  index: "lib config loader runtime server".split(" "),
};

/** Libraries that only some layers may import. */
export const LIBRARIES: { readonly [name: string]: readonly string[] } = {
  h3: ["runtime"],
  listhen: ["runtime"],
  jiti: ["loader"],
  yaml: ["config", "cli"],
  ajv: ["config", "runtime", "admin", "server", "testing"],
  vitest: ["testing"],
  pino: ["lib"],
  undici: ["lib", "pipeline", "runtime"],
  ws: ["pipeline", "runtime"],
};

export interface Import {
  readonly from: string;
  readonly typeOnly: boolean;
  /** Whether it is `import()`, which loads the module when it is first needed. */
  readonly isDynamic?: boolean;
}

/** Every module that a source names: static and dynamic imports, and re-exports. */
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
    found.push({ from: from!, typeOnly: false, isDynamic: true });
  return found;
}

const layerOf = (path: string): string => {
  const parts = path.split("/");
  if (parts[0] === "plugins") return "builtin";
  return parts.length > 2 ? parts[1]! : parts[1]!.replace(/\.ts$/, "");
};

/** Reason why a file of `src` may not import this. Undefined if it may. */
export function upward(file: string, { from, typeOnly }: Import): string | undefined {
  const layer = layerOf(file);
  const may = LAYERS[layer];
  if (!may) return `${file} is in no layer`;
  if (from.startsWith("node:")) return undefined;
  if (!from.startsWith(".")) {
    const name = packageOf(from);
    if (name === "tollgate") return `${file} imports ${from}: inside, files are named by path`;
    const layers = LIBRARIES[name];
    return !layers || layers.includes(layer) || typeOnly
      ? undefined
      : `${file} imports ${name}, which only ${layers.join(" and ")} may import`;
  }
  const target = normalize(join(dirname(file), from));
  if (target.endsWith(".json")) return undefined;
  if (!target.endsWith(".ts")) return `${file} imports ${from} without its extension`;
  const to = layerOf(target);
  if (to === layer || may.includes(to)) return undefined;
  if (typeOnly && may.includes(`types:${to}`)) return undefined;
  return `${file} imports ${target}: ${layer} may not import ${to}${may.includes(`types:${to}`) ? ", but its types" : ""}`;
}

/**
 * Reason why a built-in plugin may not import this. `own`: the packages that its folder declares.
 */
export function foreign(
  file: string,
  { from, typeOnly }: Import,
  own: readonly string[],
): string | undefined {
  if (from.startsWith("node:") || /^tollgate\/(plugin|store)$/.test(from)) return undefined;
  if (/^tollgate\/protocols\/[a-z-]+$/.test(from)) return undefined;
  if (!from.startsWith(".")) {
    const known = own.includes(packageOf(from)) || (typeOnly && from === "json-schema-to-ts");
    return known ? undefined : `${file} imports ${from}, which its folder does not declare`;
  }
  const target = normalize(join(dirname(file), from));
  // plugins/<kind>/…: plugins of one kind may share code that only they need.
  const kind = file.split("/").slice(0, 2).join("/");
  return target.startsWith(`${kind}/`)
    ? undefined
    : `${file} imports ${target}: a plugin knows tollgate/plugin, tollgate/store, tollgate/protocols/* and its own folder`;
}

export const packageOf = (from: string): string =>
  from
    .split("/")
    .slice(0, from.startsWith("@") ? 2 : 1)
    .join("/");

/**
 * Finds exports without a doc comment, and doc comments without a declaration because another one
 * follows.
 */
export function undocumented(file: string, source: string): string[] {
  const lines = source.split("\n");
  return lines.flatMap((line, i) => {
    const above = lines[i - 1]?.trimEnd() ?? "";
    if (/^export (?!\*|\{|type \{)/.test(line) && !above.endsWith("*/"))
      return [`${file}:${i + 1} has no word on ${line.split(/[({=]/)[0]!.trim()}`];
    if (above.endsWith("*/") && line.trimStart().startsWith("/**"))
      return [`${file}:${i} has two comments for one thing`];
    return [];
  });
}

/**
 * Ways in which a test depends on the speed of the machine. A monotonic time that is only passed to
 * the tested code is no measurement.
 */
const CLOCK_BOUND: Readonly<Record<string, RegExp>> = {
  "measures elapsed time":
    /(?:[-+<=]|[^=]>) *performance\.now\(\)|\bperformance\.now\(\) *[-+<>]|\bhrtime\b|\bperformance\.(?:mark|measure)\(|\bconsole\.time\(/,
  "compares with the wall clock":
    /\bexpect\b.*\bDate\.now\(|\bDate\.now\(\) - [a-z]|[\w)!] - Date\.now\(\)/,
  "waits for a fixed time":
    /"node:timers\/promises"|\bawait new Promise\(.*\bsetTimeout\(|\b(?:waitFor|waitUntil|expect\.poll)\(|\bsleep\((?!ms: )/,
};
/** Lines that end a test with a limit of its own: `}, 10_000);`, or the number on a line of its own. */
const LIMIT = /\{ timeout: ([\d_]+)\b|^ {2,6}\}, ([\d_]{6,})\);$/;
/** Arguments of a test without a timeout. */
const GIVEN_MS = 120_000;
/** Time that only the test itself moves. */
const OWN_TIME = /\bvi\.useFakeTimers\(|\bnew VirtualClock\(/;

/**
 * Finds lines of a test that may fail on a busy machine, or that wait for a time and not for an
 * event. There are no exceptions.
 */
export function clockBound(file: string, source: string): string[] {
  const ownTime = OWN_TIME.test(source);
  const lines = source.split("\n");
  return lines.flatMap((line, i) => {
    const own = lines[i + 1]?.trim() === ");" ? /^ +([\d_]{6,}),$/.exec(line)?.[1] : undefined;
    const limit = (own ?? LIMIT.exec(line)?.slice(1).find(Boolean))?.replaceAll("_", "");
    const found = Object.keys(CLOCK_BOUND).filter(
      (name) => !ownTime && CLOCK_BOUND[name]!.test(line),
    );
    if (limit !== undefined && Number(limit) < GIVEN_MS) found.push("has less time than others");
    return found.map((name) => `${file}:${i + 1} ${name}: ${line.trim()}`);
  });
}

/** Methods of the contract's interfaces without a doc comment, which states when the method is called. */
export function unexplained(file: string, source: string): string[] {
  const lines = source.split("\n");
  return lines.flatMap((line, i) => {
    const method = /^ {2,4}(?:readonly )?(?!super\b)(\w+)\??(?:<[^>]*>)?\(/.exec(line)?.[1];
    if (method === undefined || lines[i - 1]?.trimEnd().endsWith("*/")) return [];
    return [`${file}:${i + 1} does not say when ${method} is called`];
  });
}

/** The source of an export of this package: `tollgate/<name>`. */
const exported = (from: string): string | undefined => {
  const name = /^tollgate\/(.+)$/.exec(from)?.[1];
  return name === "testing/vitest" ? "src/testing/vitest.ts" : name && `src/${name}/index.ts`;
};

/** The import graph: for each file, the files of this repository that it imports, by path or as an export of the package. */
export function importGraph(files: ReadonlyMap<string, string>): Map<string, string[]> {
  const graph = new Map<string, string[]>();
  for (const [file, source] of files)
    graph.set(
      file,
      importsOf(source).flatMap(
        ({ from }) =>
          (from.startsWith(".") ? normalize(join(dirname(file), from)) : exported(from)) ?? [],
      ),
    );
  return graph;
}

/** The same graph the other way around: for each imported file, the files that import it. */
export function importers(graph: ReadonlyMap<string, readonly string[]>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [file, targets] of graph)
    for (const target of targets) found.set(target, [...(found.get(target) ?? []), file]);
  return found;
}

/** Groups of files that import each other in a circle. Type imports count: a reader of one file has to read all of them. */
export function circles(files: ReadonlyMap<string, string>): string[][] {
  const graph = importGraph(files);
  for (const [file, targets] of graph)
    graph.set(
      file,
      targets.filter((target) => files.has(target)),
    );
  return components(graph).map((group) => group.sort());
}

/**
 * Circles of folders. The nodes of a folder are its subfolders and its own files, and the edges are
 * the imports between them at run time.
 */
export function folderCircles(files: ReadonlyMap<string, string>): string[] {
  const folders = new Map<string, Map<string, Set<string>>>();
  const add = (folder: string, from: string, to?: string) => {
    const nodes = getOrAdd(folders, folder, () => new Map<string, Set<string>>());
    const targets = getOrAdd(nodes, from, () => new Set<string>());
    if (to === undefined || to === from) return;
    getOrAdd(nodes, to, () => new Set());
    targets.add(to);
  };
  for (const [file, source] of files) {
    const targets = importsOf(source)
      .filter(({ from, typeOnly }) => !typeOnly && from.startsWith("."))
      .map(({ from }) => normalize(join(dirname(file), from)))
      .filter((target) => files.has(target));
    for (let folder = dirname(file); folder !== "."; folder = dirname(folder)) {
      const nodeOf = (path: string) => path.slice(folder.length + 1).split("/")[0]!;
      add(folder, nodeOf(file));
      for (const target of targets)
        if (target.startsWith(`${folder}/`)) add(folder, nodeOf(file), nodeOf(target));
    }
  }
  return [...folders].flatMap(([folder, nodes]) => {
    const graph = new Map([...nodes].map(([node, targets]) => [node, [...targets]]));
    // `circles` checks circles of files.
    return components(graph)
      .filter((group) => group.some((node) => !node.endsWith(".ts")))
      .map((group) => `${folder}: ${group.sort().join(", ")}`);
  });
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/** Files shorter than this belong in the file that imports them, if only one does. */
export const SHORT_LINES = 25;

/**
 * Short files that only one other file imports. Exceptions: an `index.ts` is the entry of its
 * folder, a program's entry has no importer, and a lazily loaded module must be a file.
 */
export function shortWithOneImporter(files: ReadonlyMap<string, string>): string[] {
  const users = importers(importGraph(files));
  const dynamic = new Set(
    [...files].flatMap(([file, source]) =>
      importsOf(source)
        .filter(({ isDynamic }) => isDynamic)
        .map(({ from }) => normalize(join(dirname(file), from))),
    ),
  );
  return [...files]
    .filter(([file, source]) => {
      const isEntry = /(^|\/)index\.ts$/.test(file) || dynamic.has(file);
      return (
        !isEntry && source.split("\n").length - 1 < SHORT_LINES && users.get(file)?.length === 1
      );
    })
    .map(([file]) => `${file} is imported only by ${users.get(file)![0]}`);
}

/** Tarjan's strongly connected components, those of more than one file. */
function components(arrows: ReadonlyMap<string, readonly string[]>): string[][] {
  const seen = new Map<string, { index: number; low: number; open: boolean }>();
  const open: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): number => {
    const here = { index: seen.size, low: seen.size, open: true };
    seen.set(file, here);
    open.push(file);
    for (const to of arrows.get(file)!) {
      const there = seen.get(to);
      if (!there) here.low = Math.min(here.low, visit(to));
      else if (there.open) here.low = Math.min(here.low, there.index);
    }
    if (here.low === here.index) {
      const group = open.splice(open.indexOf(file));
      for (const one of group) seen.get(one)!.open = false;
      if (group.length > 1) found.push(group);
    }
    return here.low;
  };
  for (const file of arrows.keys()) if (!seen.has(file)) visit(file);
  return found;
}

const WALL = "src/lib/time/wall-clock.ts";

/**
 * Finds lines that read the wall clock elsewhere, or measure a duration with it in a plugin: the
 * wall clock can jump.
 */
export function walled(file: string, source: string): string[] {
  const wall = file.startsWith("src/")
    ? /\bDate\.now\b|\bnew Date\(\)/
    : /\bDate\.now\(\) - [a-z]|- Date\.now\(\) [<>]/;
  return file === WALL
    ? []
    : source.split("\n").flatMap((line, i) => {
        const code = line.replace(/^\s*(\/\/|\*|\/\*).*$/, "");
        return wall.test(code) ? [`${file}:${i + 1} ${line.trim()}`] : [];
      });
}
