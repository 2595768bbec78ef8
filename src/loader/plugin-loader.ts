// The loader floor: `use` → a definition that may be mounted, or the one problem that stands in the way. Imports what
// the file names and nothing else; never runs a setup.
// May import: lib, plugin, config. May not: the walk, the gateway, a plugin of ours.
import { chmodSync, lstatSync, mkdirSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Jiti, JitiOptions } from "jiti";
import { problem, type ProblemText } from "../config/problems.ts";
import type { LoadPlugin } from "../config/gateway-config.ts";
import type { Definition } from "../plugin/define.ts";
import type { FileHashes } from "../lib/content-hash.ts";
import { checkLock, checkDeclaration } from "./lock-check.ts";
import { importLocked, isLocked, lockModules, allowModules } from "./locked-modules.ts";
import { errorLocationOf } from "../lib/error-location.ts";
import { CAN_DENY_NETWORK } from "../isolation/child-process.ts";
import { invalidateModules } from "./module-freshness.ts";
import {
  loadAtSocket,
  isSocketSpecifier,
  canRunOutOfProcess,
  loadInChild,
} from "./out-of-process.ts";
import { readImportGraph } from "./import-graph.ts";
import {
  toFilePath,
  type BuiltinPlugins,
  resolvePlugin,
  type ResolveEntry,
} from "./resolve-plugin.ts";
import type { TypeChecker } from "./typecheck.ts";
import { validateDefinition } from "./validate-definition.ts";

export interface LoaderOptions {
  /** Where transformed sources may be kept; without it they are not. */
  readonly stateDir?: string;
  readonly builtin: BuiltinPlugins;
  /** What plugins import from us, by specifier: tollgate/plugin and friends. Lent, so that there is one copy. */
  readonly hostModules: Readonly<Record<string, unknown>>;
  readonly importTimeoutMs?: number;
  /** What judges the types of code that is new. Absent: nothing does. */
  readonly checkTypes?: TypeChecker;
}

/**
 * A module is imported once, and again when one of its files has changed. Node forgets no module: each version of a plugin takes
 * its memory until the process ends.
 */
export function createLoader(options: LoaderOptions): LoadPlugin {
  const { builtin, importTimeoutMs = 10_000 } = options;
  // Made when the first plugin is not one of ours: most gateways never need it.
  let jitiPromise: Promise<Jiti> | undefined;
  const jiti = () =>
    (jitiPromise ??= import("jiti").then((lib) =>
      lib.createJiti(import.meta.filename, jitiOptions(options)),
    ));
  const resolveEntry: ResolveEntry = async (specifier, fromFile) =>
    toFilePath(
      (await jiti()).esmResolve(specifier, {
        parentURL: fromFile,
        try: true,
        ...SOURCE_CONDITIONS,
      }),
    );

  const loaded = new Map<
    string,
    { definition: Definition; from: string; files: FileHashes; version: string }
  >();
  return async (use, kind, fromFile, trust, isolate) => {
    if (isSocketSpecifier(use)) return loadAtSocket(use, kind, fromFile);
    if (isolate && !canRunOutOfProcess(kind))
      return { problem: problem.kindNotIsolatable(use, kind) };
    const found = await resolvePlugin(use, kind, fromFile, builtin, resolveEntry);
    if ("problem" in found) return { problem: found.problem };
    // Before a line of it runs.
    const accepted =
      "package" in found && trust ? checkLock(found.package.name, found.package.root, trust) : {};
    if ("rejection" in accepted) return { problem: accepted.rejection };
    const { locked } = accepted;
    const open = isolate && !CAN_DENY_NETWORK ? problem.networkNotDenied(use) : undefined;
    const remark = accepted.warning ?? open;
    if (isolate && !("entry" in found)) return { problem: problem.builtinNotIsolatable(use) };
    const judged = (result: { definition: Definition; from: string; files: FileHashes }) => {
      const other =
        locked && "package" in found && found.package
          ? checkDeclaration(found.package, locked, result.definition)
          : undefined;
      if (!other) return remark ? { ...result, warning: remark } : result;
      return trust?.lock === "warn"
        ? { ...result, warning: { ...other, severity: "warning" as const } }
        : { problem: other, files: result.files };
    };
    const where = isolate ?? "";
    const key = "entry" in found ? `${kind} ${where} ${found.entry}` : `${kind} built-in ${use}`;
    const graph = "entry" in found ? readImportGraph(found.entry) : undefined;
    const version = graph?.version(graph.files[0]!) ?? "";
    const tree = "tree" in accepted ? accepted.tree : undefined;
    if (graph && "entry" in found && !isolate) {
      if (tree) lockModules(found.package!.name, tree.files);
      else allowModules(found.package?.name, [...graph.files, found.entry]);
    }
    const known = loaded.get(key);
    if (known?.version === version) return judged(known);
    if (graph && !isolate) invalidateModules(graph);
    // What lies in node_modules is npm's: it changes file by file, and is looked at when an operator asks for a reload.
    const own = graph?.files.filter((file) => !file.includes(`${sep}node_modules${sep}`)) ?? [];
    const files: FileHashes = new Map(own.map((file) => [file, graph!.hash(file)]));
    const typed = graph && !graph.files[0]!.includes(`${sep}node_modules${sep}`);
    const mistyped = typed ? await options.checkTypes?.(use, graph.files) : undefined;
    if (mistyped) return { problem: mistyped, files };
    const name = "entry" in found ? found.from : `the built-in ${use}`;
    const module =
      "entry" in found
        ? isolate
          ? loadInChild(found, graph!, { folder: dirname(trust?.configFile ?? fromFile), tree })
          : isLocked(found.entry)
            ? importLocked(found.entry)
            : jiti().then((j) => j.import(found.entry))
        : found.module();
    const imported = await withImportTimeout(
      module,
      name,
      isolate ? 3 * importTimeoutMs : importTimeoutMs,
    );
    if ("words" in imported) return { problem: imported.words, files };
    const checked = validateDefinition(imported.module, kind, name, found.from === "built-in");
    if ("words" in checked) return { problem: checked.words, files };
    const result = { definition: checked.definition, from: found.from, files, version };
    loaded.set(key, result);
    return judged(result);
  };
}

/** In the checkout, where packages of ours are what they are made of. */
const SOURCE_CONDITIONS = import.meta.filename.endsWith(".ts")
  ? { conditions: ["tollgate-source", "node", "import"] }
  : {};

const jitiOptions = (loaderOptions: LoaderOptions): JitiOptions => ({
  // Node's own import first; what it cannot resolve (tollgate/plugin beside a global install) is tried again here.
  tryNative: true,
  virtualModules: Object.assign(Object.create(null), loaderOptions.hostModules),
  fsCache: loaderOptions.stateDir === undefined ? false : privateCacheDir(loaderOptions.stateDir),
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

async function withImportTimeout(
  module: Promise<unknown>,
  from: string,
  ms: number,
): Promise<{ module: unknown } | { words: ProblemText }> {
  const { promise: late, resolve } = Promise.withResolvers<{ words: ProblemText }>();
  const timer = setTimeout(() => resolve({ words: problem.importSlow(from, ms) }), ms);
  try {
    return await Promise.race([module.then((each) => ({ module: each })), late]);
  } catch (error) {
    return { words: problem.importFailed(from, describeError(error)) };
  } finally {
    clearTimeout(timer);
  }
}

/** The throw's own words, and where in the plugin's files it happened. */
function describeError(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const firstLine = text
    .replace(/^Error: /, "")
    .trim()
    .split("\n", 1)[0]!
    .trim()
    .slice(0, 500);
  const place = errorLocationOf(error);
  return place === undefined || firstLine.includes(place) ? firstLine : `${firstLine}, at ${place}`;
}

/**
 * A user who can write here can run code in this process, because jiti executes what it finds in its cache. So only a folder of
 * this user's alone is used, and never the shared one that jiti would take by itself.
 */
function privateCacheDir(stateDir: string): string | false {
  const folder = join(stateDir, "cache", "jiti");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const each of [stateDir, join(stateDir, "cache"), folder]) {
      const found = lstatSync(each);
      const isOwnedByUser = process.getuid === undefined || found.uid === process.getuid();
      const writable = process.platform !== "win32" && (found.mode & 0o022) !== 0;
      if (!found.isDirectory() || !isOwnedByUser || writable) return false;
    }
    chmodSync(folder, 0o700);
    return folder;
  } catch {
    return false;
  }
}
