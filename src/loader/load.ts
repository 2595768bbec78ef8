// The loader floor: `use` → a definition that may be mounted, or the one problem that stands in the way. Imports what
// the file names and nothing else; never runs a setup.
// May import: lib, plugin, config. May not: the walk, the gateway, a plugin of ours.
import { chmodSync, lstatSync, mkdirSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Jiti, JitiOptions } from "jiti";
import { problem, type ProblemText } from "../config/problems.ts";
import type { LoadPlugin } from "../config/types.ts";
import type { Definition } from "../plugin/define.ts";
import type { FilesRead } from "../lib/contents.ts";
import { acceptance, saysOther } from "./accepted.ts";
import { importLocked, isLocked, lockModules, openModules } from "./locked.ts";
import { placeOf } from "../lib/thrown.ts";
import { DENIES_NETWORK } from "../isolation/child-process.ts";
import { freshen } from "./fresh.ts";
import { atSocket, isSocket, mayStandOutside, outside } from "./outside.ts";
import { graphOf } from "./graph.ts";
import { asPath, type Builtin, find, type Resolve } from "./find.ts";
import type { JudgeTypes } from "./typed.ts";
import { definitionIn } from "./definition.ts";

export interface LoaderOptions {
  /** Where transformed sources may be kept; without it they are not. */
  readonly stateDir?: string;
  readonly builtin: Builtin;
  /** What plugins import from us, by specifier: tollgate/plugin and friends. Lent, so that there is one copy. */
  readonly host: Readonly<Record<string, unknown>>;
  readonly importMs?: number;
  /** What judges the types of code that is new. Absent: nothing does. */
  readonly types?: JudgeTypes;
}

/**
 * A module is imported once, and again when one of its files has changed. Node forgets no module: each version of a plugin takes
 * its memory until the process ends.
 */
export function createLoader(of: LoaderOptions): LoadPlugin {
  const { builtin, importMs = 10_000 } = of;
  // Made when the first plugin is not one of ours: most gateways never need it.
  let made: Promise<Jiti> | undefined;
  const jiti = () =>
    (made ??= import("jiti").then((lib) => lib.createJiti(import.meta.filename, options(of))));
  const resolveEntry: Resolve = async (specifier, fromFile) =>
    asPath((await jiti()).esmResolve(specifier, { parentURL: fromFile, try: true, ...SOURCE }));

  const loaded = new Map<
    string,
    { definition: Definition; from: string; files: FilesRead; version: string }
  >();
  return async (use, kind, fromFile, trust, isolate) => {
    if (isSocket(use)) return atSocket(use, kind, fromFile);
    if (isolate && !mayStandOutside(kind)) return { problem: problem.kindOutside(use, kind) };
    const found = await find(use, kind, fromFile, builtin, resolveEntry);
    if ("words" in found) return { problem: found.words };
    // Before a line of it runs.
    const accepted =
      "package" in found && trust ? acceptance(found.package.name, found.package.root, trust) : {};
    if ("refused" in accepted) return { problem: accepted.refused };
    const { locked } = accepted;
    const open = isolate && !DENIES_NETWORK ? problem.networkOpen(use) : undefined;
    const remark = accepted.remark ?? open;
    if (isolate && !("entry" in found)) return { problem: problem.builtinOutside(use) };
    const judged = (result: { definition: Definition; from: string; files: FilesRead }) => {
      const other =
        locked && "package" in found && found.package
          ? saysOther(found.package, locked, result.definition)
          : undefined;
      if (!other) return remark ? { ...result, remark } : result;
      return trust?.lock === "warn"
        ? { ...result, remark: { ...other, severity: "warning" as const } }
        : { problem: other, files: result.files };
    };
    const where = isolate ?? "";
    const key = "entry" in found ? `${kind} ${where} ${found.entry}` : `${kind} built-in ${use}`;
    const graph = "entry" in found ? graphOf(found.entry) : undefined;
    const version = graph?.version(graph.files[0]!) ?? "";
    const tree = "tree" in accepted ? accepted.tree : undefined;
    if (graph && "entry" in found && !isolate) {
      if (tree) lockModules(found.package!.name, tree.files);
      else openModules(found.package?.name, [...graph.files, found.entry]);
    }
    const known = loaded.get(key);
    if (known?.version === version) return judged(known);
    if (graph && !isolate) freshen(graph);
    // What lies in node_modules is npm's: it changes file by file, and is looked at when an operator asks for a reload.
    const own = graph?.files.filter((file) => !file.includes(`${sep}node_modules${sep}`)) ?? [];
    const files: FilesRead = new Map(own.map((file) => [file, graph!.hash(file)]));
    const typed = graph && !graph.files[0]!.includes(`${sep}node_modules${sep}`);
    const mistyped = typed ? await of.types?.(use, graph.files) : undefined;
    if (mistyped) return { problem: mistyped, files };
    const name = "entry" in found ? found.from : `the built-in ${use}`;
    const module =
      "entry" in found
        ? isolate
          ? outside(found, graph!, { folder: dirname(trust?.file ?? fromFile), tree })
          : isLocked(found.entry)
            ? importLocked(found.entry)
            : jiti().then((j) => j.import(found.entry))
        : found.module();
    const imported = await importing(module, name, isolate ? 3 * importMs : importMs);
    if ("words" in imported) return { problem: imported.words, files };
    const checked = definitionIn(imported.module, kind, name, found.from === "built-in");
    if ("words" in checked) return { problem: checked.words, files };
    const result = { definition: checked.definition, from: found.from, files, version };
    loaded.set(key, result);
    return judged(result);
  };
}

/** In the checkout, where packages of ours are what they are made of. */
const SOURCE = import.meta.filename.endsWith(".ts")
  ? { conditions: ["tollgate-source", "node", "import"] }
  : {};

const options = (of: LoaderOptions): JitiOptions => ({
  // Node's own import first; what it cannot resolve (tollgate/plugin beside a global install) is tried again here.
  tryNative: true,
  virtualModules: Object.assign(Object.create(null), of.host),
  fsCache: of.stateDir === undefined ? false : privateFolder(of.stateDir),
  interopDefault: false,
  // Whatever is not said here would be read from JITI_* variables.
  rebuildFsCache: false,
  moduleCache: true,
  debug: false,
  sourceMaps: false,
  extensions: [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"],
  alias: {},
  nativeModules: [],
  transformModules: [],
  esmEvalTempFile: false,
  jsx: false,
  tsconfigPaths: false,
});

async function importing(
  module: Promise<unknown>,
  from: string,
  ms: number,
): Promise<{ module: unknown } | { words: ProblemText }> {
  const { promise: late, resolve } = Promise.withResolvers<{ words: ProblemText }>();
  const timer = setTimeout(() => resolve({ words: problem.importSlow(from, ms) }), ms);
  try {
    return await Promise.race([module.then((each) => ({ module: each })), late]);
  } catch (error) {
    return { words: problem.importFailed(from, reason(error)) };
  } finally {
    clearTimeout(timer);
  }
}

/** The throw's own words, and where in the plugin's files it happened. */
function reason(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const said = text
    .replace(/^Error: /, "")
    .trim()
    .split("\n", 1)[0]!
    .trim()
    .slice(0, 500);
  const place = placeOf(error);
  return place === undefined || said.includes(place) ? said : `${said}, at ${place}`;
}

/**
 * A user who can write here can run code in this process, because jiti executes what it finds in its cache. So only a folder of
 * this user's alone is used, and never the shared one that jiti would take by itself.
 */
function privateFolder(stateDir: string): string | false {
  const folder = join(stateDir, "cache", "jiti");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const each of [stateDir, join(stateDir, "cache"), folder]) {
      const found = lstatSync(each);
      const mine = process.getuid === undefined || found.uid === process.getuid();
      const writable = process.platform !== "win32" && (found.mode & 0o022) !== 0;
      if (!found.isDirectory() || !mine || writable) return false;
    }
    chmodSync(folder, 0o700);
    return folder;
  } catch {
    return false;
  }
}
