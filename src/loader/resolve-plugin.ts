// Resolves `use:` in this order: a path, a package, a built-in plugin, or a package by its
// conventional name, which may also be installed next to the gateway. URLs, queries, and paths that
// are not on the local disk are rejected.
import { findPackageJSON } from "node:module";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { PluginKind } from "../plugin/define.ts";
import { problem, type ProblemText } from "../config/problems.ts";

/**
 * Built-in plugins by kind and name. Each module has a definition as its default export and is
 * imported on demand.
 */
export type BuiltinPlugins = Readonly<
  Partial<Record<PluginKind, Readonly<Record<string, () => Promise<unknown>>>>>
>;

export type ResolvedPlugin =
  | { readonly from: "built-in"; readonly module: () => Promise<unknown> }
  /** `from`: shown by `list`. `package`: not set for a file of the operator. */
  | {
      readonly from: string;
      readonly entry: string;
      /** Export path of the plugin in its package: "." or "./frontend". */
      readonly package?: { readonly name: string; readonly root: string; readonly path: string };
    }
  | { readonly problem: ProblemText };

/**
 * Resolves the entry file of a package or path by Node's import rules. Undefined if there is none.
 */
export type ResolveEntry = (specifier: string, fromFile: string) => Promise<string | undefined>;

const SHORT_NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const PACKAGE_NAME = /^(?:@[a-z0-9-][a-z0-9._-]*\/)?[a-z0-9-][a-z0-9._-]*/;
const PACKAGE_SUBPATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)*$/;

export const isShortName = (name: unknown): name is string =>
  typeof name === "string" && SHORT_NAME.test(name);

export const conventionalName = (kind: PluginKind, name: string): string =>
  `tollgate-${kind}-${name}`;

export async function resolvePlugin(
  use: string,
  kind: PluginKind,
  fromFile: string,
  builtin: BuiltinPlugins,
  resolveEntry: ResolveEntry,
): Promise<ResolvedPlugin> {
  const why = rejectSpecifier(use);
  if (why !== undefined) return { problem: problem.badSpecifier(use, why) };
  if (/^(\.{0,2})\//.test(use))
    return findFile(resolve(dirname(fromFile), use), fromFile, resolveEntry);
  const ours = builtin[kind] ?? {};
  const known = Object.keys(ours);
  if (use.includes("/") || use.startsWith("@"))
    return (
      (await findPackage(use, fromFile, resolveEntry)) ?? {
        problem: problem.pluginNotFound(use, kind, PACKAGE_NAME.exec(use)![0], []),
      }
    );
  if (Object.hasOwn(ours, use)) return { from: "built-in", module: ours[use]! };
  const short =
    use.startsWith(conventionalName(kind, "")) && use.slice(conventionalName(kind, "").length);
  if (short && isShortName(short)) return { problem: problem.fullPackageName(use, short) };
  if (!isShortName(use))
    return {
      problem: problem.badSpecifier(
        use,
        "a short name must be lowercase letters, digits, and single hyphens",
      ),
    };
  const name = conventionalName(kind, use);
  return (
    (await findPackage(name, fromFile, resolveEntry)) ??
    // A config in a system directory such as /etc/tollgate has no `node_modules`. Packages next to
    // the gateway were installed with it.
    (await findPackage(name, import.meta.filename, resolveEntry)) ?? {
      problem: problem.pluginNotFound(use, kind, name, known),
    }
  );
}

/** Returns why a specifier is invalid, regardless of whether it would resolve. */
function rejectSpecifier(use: string): string | undefined {
  if (/\p{Cc}/u.test(use)) return "it contains control characters";
  if (/^[a-z][a-z0-9+.-]*:/i.test(use))
    return "plugins are loaded from local files, not from a URL";
  if (use.startsWith("//")) return "plugins are loaded from local files, not from a URL";
  if (/[?#%\\]/.test(use)) return "?, #, %, and \\ are not allowed in it";
  if (/^(\.{0,2})\//.test(use)) return undefined;
  const name = PACKAGE_NAME.exec(use)?.[0];
  const rest = name === undefined ? "" : use.slice(name.length);
  if (rest.startsWith("@")) return "the version must be set in package.json";
  if (use.startsWith("@") && !name?.startsWith("@")) return "a scope needs a package: @scope/name";
  if (
    (use.includes("/") || use.startsWith("@")) &&
    (name === undefined || !PACKAGE_SUBPATH.test(rest))
  )
    return "it is not a valid package name";
  return undefined;
}

async function findFile(
  file: string,
  fromFile: string,
  resolveEntry: ResolveEntry,
): Promise<ResolvedPlugin> {
  const entry = isFile(file) ? file : await resolveEntry(file, fromFile);
  return entry === undefined
    ? { problem: problem.pluginFileMissing(file) }
    : { from: entry, entry };
}

const isFile = (file: string) => statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;

/**
 * Finds a package only in a `node_modules` directory at or above the file that names it, or in the
 * gateway's own. NODE_PATH and per-user directories are ignored.
 */
async function findPackage(
  use: string,
  fromFile: string,
  resolveEntry: ResolveEntry,
): Promise<ResolvedPlugin | undefined> {
  const manifest = manifestOf(use, fromFile);
  const entry = manifest && (await resolveEntry(use, fromFile));
  if (!manifest || !entry) return undefined;
  if (!realpathSync(entry).startsWith(realpathSync(dirname(manifest)) + sep)) return undefined;
  const { name, version } = JSON.parse(readFileSync(manifest, "utf8"));
  return {
    from: `${name ?? use}@${version ?? "0"}`,
    entry,
    package: {
      name: name ?? use,
      root: dirname(manifest),
      path: `.${use.slice(PACKAGE_NAME.exec(use)![0].length)}`,
    },
  };
}

function manifestOf(use: string, fromFile: string): string | undefined {
  try {
    return findPackageJSON(use, fromFile);
  } catch {
    return undefined;
  }
}

/** jiti returns a URL where Node does. */
export const toFilePath = (entry: string | undefined): string | undefined =>
  entry?.startsWith("file:") ? fileURLToPath(entry) : entry;
