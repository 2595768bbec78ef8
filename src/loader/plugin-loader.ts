// Loads plugins: resolves `use` to a definition that can be mounted, or to a problem. Imports only
// the modules that the config names and never runs a setup. May import lib, plugin, and config.
// Must not import the pipeline, the gateway, or Tollgate's own plugins.
import { chmodSync, lstatSync, mkdirSync, existsSync, realpathSync } from "node:fs";
import { dirname, join, sep, resolve } from "node:path";
import type { Jiti, JitiOptions } from "jiti";
import { IS_SOURCE } from "../lib/source-file.ts";
import { problem, type ProblemText } from "../config/problems.ts";
import type { LoadPlugin } from "../config/gateway-config.ts";
import type { Definition, PluginKind } from "../plugin/define.ts";
import type { FileHashes } from "../lib/content-hash.ts";
import { checkLock, checkDeclaration } from "./lock-check.ts";
import { importLocked, isLocked, lockModules, allowModules } from "./locked-modules.ts";
import { errorLocationOf } from "../lib/error-location.ts";
import { CAN_DENY_NETWORK } from "../isolation/child-process.ts";
import { readImportGraph, type ImportGraph } from "./import-graph.ts";
import {
  toFilePath,
  type BuiltinPlugins,
  resolvePlugin,
  type ResolveEntry,
  type ResolvedPlugin,
} from "./resolve-plugin.ts";
import type { TypeChecker } from "./typecheck.ts";
import { validateDefinition } from "./validate-definition.ts";
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { describePlugin } from "../isolation/isolated-definition.ts";
import { ISOLATABLE_KINDS } from "../isolation/serialization.ts";
import { packageFoldersOf, type PackageTree } from "./package-tree.ts";

export interface LoaderOptions {
  /** Directory for caching transformed sources. If unset, they are not cached. */
  readonly stateDir?: string;
  readonly builtin: BuiltinPlugins;
  /**
   * Modules that plugins import from Tollgate, by specifier, such as `tollgate/plugin`. They are
   * passed in, so that a plugin uses the same copy as the gateway.
   */
  readonly hostModules: Readonly<Record<string, unknown>>;
  readonly importTimeoutMs?: number;
  /** Checks the types of new plugin code. If unset, types are not checked. */
  readonly checkTypes?: TypeChecker;
}

/**
 * Creates a loader. The loader imports a module once, and again when one of its files has changed.
 * Node never unloads a module, so each version of a plugin uses memory until the process ends.
 */
export function createLoader(options: LoaderOptions): LoadPlugin {
  const { builtin, importTimeoutMs = 10_000 } = options;
  // Created for the first plugin that is not built in. Most gateways never need it.
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
    // Checked before any of the package's code runs.
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
    // Files in `node_modules` are not watched, because npm changes them one by one. They are
    // checked when an operator reloads the config.
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
    const checked = validateDefinition(imported.module, kind, name, !("entry" in found));
    if ("words" in checked) return { problem: checked.words, files };
    const result = {
      definition: checked.definition,
      from: found.from,
      isBuiltIn: !("entry" in found),
      files,
      version,
    };
    loaded.set(key, result);
    return judged(result);
  };
}

/** In the repository, resolves Tollgate's packages to their sources. */
const SOURCE_CONDITIONS = IS_SOURCE ? { conditions: ["tollgate-source", "node", "import"] } : {};

const jitiOptions = (loaderOptions: LoaderOptions): JitiOptions => ({
  // Tries Node's own import first. For imports that Node cannot resolve, such as `tollgate/plugin`
  // next to a global install, jiti is used.
  tryNative: true,
  virtualModules: Object.assign(Object.create(null), loaderOptions.hostModules),
  fsCache: loaderOptions.stateDir === undefined ? false : privateCacheDir(loaderOptions.stateDir),
  interopDefault: false,
  // All further options are set explicitly, because jiti would otherwise read them from JITI_*
  // variables.
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

/** Returns the error's message and its location in the plugin's files. */
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
 * Returns the cache directory for jiti, or false. jiti runs the code in its cache, so a user who
 * can write to the directory could run code in this process. Only a directory that belongs to this
 * user alone is used, and never jiti's shared default directory.
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

// Makes Node import changed files again. Node caches modules by URL for the lifetime of the
// process. A file that changed since its first import therefore gets another URL, with a query that
// is added during resolution. Unchanged files keep their URL, so plugins still share their modules.
// This state belongs to the process, because the cache does.

/** Version under which a file was first imported, by URL. */
const firstVersions = new Map<string, string>();
/** Current version of a file, by URL, if it is not the first version. */
const currentVersions = new Map<string, string>();
let isHookInstalled = false;

/** Makes later imports of files in this graph load their current content. */
function invalidateModules(graph: ImportGraph): void {
  const { cache } = createRequire(import.meta.url);
  for (const file of graph.files) {
    const url = pathToFileURL(file).href;
    const version = graph.version(file);
    const known = firstVersions.get(url);
    const before = currentVersions.get(url) ?? known;
    if (known === undefined) firstVersions.set(url, version);
    if (before === undefined || before === version) continue;
    // CommonJS modules and modules that jiti transformed are cached by path.
    delete cache[file];
    if (version === known) currentVersions.delete(url);
    else currentVersions.set(url, version);
    installHook();
  }
}

/** Installed only after the first change, because most gateways never need it. */
function installHook(): void {
  if (isHookInstalled) return;
  isHookInstalled = true;
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      const version = context.conditions.includes("require")
        ? undefined
        : currentVersions.get(found.url);
      return version === undefined ? found : { ...found, url: `${found.url}?version=${version}` };
    },
  });
}

// Loads plugins that are not imported into this process: either a child process imports and
// describes them, or another program serves them on a socket.

const SOCKET_PREFIX = "unix:";

const isSocketSpecifier = (use: string): boolean => use.startsWith(SOCKET_PREFIX);

const canRunOutOfProcess = (kind: PluginKind): boolean =>
  (ISOLATABLE_KINDS as readonly PluginKind[]).includes(kind);

/**
 * Returns the description of a module from a child process, in the same form as the module. The
 * child can read only the files of the module.
 */
async function loadInChild(
  { entry, package: of }: Extract<ResolvedPlugin, { entry: string }>,
  { files }: ImportGraph,
  { folder, tree }: { readonly folder: string; readonly tree: PackageTree | undefined },
): Promise<unknown> {
  const real = realpathSync(entry);
  const reads =
    tree?.folders ?? (of ? packageFoldersOf(of.root) : [...files, ...packageFilesAbove(real)]);
  const locked = tree && { name: of!.name, files: Object.fromEntries(tree.files) };
  return {
    default: await describePlugin({ entry: real, readPaths: reads, configDir: folder, locked }),
  };
}

/**
 * Returns the paths where Node looks up packages that a file imports, and the file's module type.
 */
function packageFilesAbove(file: string): string[] {
  const found: string[] = [];
  for (let at = dirname(file); ; at = dirname(at)) {
    found.push(join(at, "package.json"), join(at, "node_modules"));
    if (dirname(at) === at) return found.filter((each) => existsSync(each));
  }
}

/**
 * Loads a plugin from a socket. The path, such as `unix:./guard.sock`, is relative to the file that
 * contains it.
 */
async function loadAtSocket(
  use: string,
  kind: PluginKind,
  fromFile: string,
): ReturnType<LoadPlugin> {
  const path = use.slice(SOCKET_PREFIX.length);
  if (!/^\.{0,2}\/[^\0]{1,100}$/.test(path)) return { problem: problem.socketPath(use) };
  if (!canRunOutOfProcess(kind)) return { problem: problem.kindNotIsolatable(use, kind) };
  const socket = resolve(dirname(fromFile), path);
  let description: unknown;
  try {
    description = await describePlugin({ socket });
  } catch (error) {
    return { problem: problem.importFailed(use, (error as Error).message) };
  }
  const checked = validateDefinition({ default: description }, kind, use);
  return "words" in checked ? { problem: checked.words } : { ...checked, from: use };
}
