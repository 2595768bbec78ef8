// Enforces the lock file for modules. Every file that a package in `plugins.lock.yaml` loads must
// match, byte for byte, a file that the lock covers: a file of the package, of its dependencies, or
// of Tollgate. The check hooks into Node's resolver and loader, so it covers `import`, `import()`,
// and `require`.
import { readFileSync, realpathSync } from "node:fs";
import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { registerHooks, type RegisterHooksOptions } from "node:module";
import { findPackageRoot } from "../lib/package-root.ts";
import { integrityOf, packageFoldersOf } from "./package-tree.ts";

export type LockedFiles = ReadonlyMap<string, string>;

/** Hashes of each package's files, by real path. */
const lockedPackages = new Map<string, LockedFiles>();
/**
 * Files that are not locked and may load any module: the operator's own files, and the modules that
 * they load.
 */
const unlockedFiles = new Set<string>();
let isHookInstalled = false;

/**
 * Starts tracking loaded modules. Must be called before the first module that does not belong to
 * Tollgate is loaded. Modules that were loaded earlier count as locked, so that no package can load
 * on behalf of a file that does not exist.
 */
export function installLockHooks(): void {
  if (isHookInstalled) return;
  isHookInstalled = true;
  registerHooks({ resolve: resolveHook, load: loadHook });
}

/** Creates an error without a stack, because a stack would not help an operator. */
function lockError(message: string): Error {
  const error = new Error(message);
  error.stack = error.message;
  return error;
}

/** Restricts a package to these files from now on. */
export function lockModules(name: string, files: LockedFiles): void {
  installLockHooks();
  lockedPackages.set(name, files);
}

/** Allows files to load any module: with `lock: warn` or `off`, or for the operator's own files. */
export function allowModules(name: string | undefined, files: readonly string[]): void {
  installLockHooks();
  if (name !== undefined) lockedPackages.delete(name);
  for (const file of files) unlockedFiles.add(file);
}

const resolveHook: RegisterHooksOptions["resolve"] = (specifier, context, next) => {
  const parent = filePathOf(context.parentURL);
  if (isUnlocked(parent)) {
    const found = next(specifier, context);
    const path = filePathOf(found.url);
    if (path !== undefined && lockedHashesOf(path).length === 0) unlockedFiles.add(path);
    return found;
  }
  // Resolves to the running gateway, even if another copy is installed next to the package.
  if (/^tollgate(\/|$)/.test(specifier))
    return next(specifier, { ...context, parentURL: import.meta.url });
  const found = next(specifier, context);
  const path = filePathOf(found.url);
  if (path === undefined || isOwnModule(path) || lockedHashesOf(path).length > 0) return found;
  throw lockError(
    `plugins.lock.yaml does not cover ${path}, which ${parent ?? "a locked package"} loads. Declare its package under dependencies, then run tollgate plugin add again`,
  );
};

const loadHook: RegisterHooksOptions["load"] = (url, context, next) => {
  const path = filePathOf(url);
  const hashes = path === undefined ? [] : lockedHashesOf(path);
  if (path === undefined || hashes.length === 0) return next(url, context);
  const bytes = readFileSync(path);
  if (!hashes.includes(integrityOf(bytes)))
    throw lockError(`${path} has changed since its package was accepted in plugins.lock.yaml`);
  const loaded = next(url, context);
  // Runs exactly the bytes that were hashed.
  return SOURCE_FORMATS.has(loaded.format ?? "") ? { ...loaded, source: bytes.toString() } : loaded;
};

const SOURCE_FORMATS = new Set(["module", "commonjs", "json"]);

export const isLocked = (file: string): boolean => lockedHashesOf(realpathSync(file)).length > 0;

/**
 * Returns the hashes under which packages have locked a file. Empty: the file is in no locked
 * package.
 */
const lockedHashesOf = (path: string): string[] =>
  [...lockedPackages.values()].flatMap((files) => files.get(path) ?? []);

/** Whether a module may load any other module. */
function isUnlocked(parent: string | undefined): boolean {
  if (lockedPackages.size === 0) return true;
  if (parent === undefined || lockedHashesOf(parent).length > 0) return false;
  return unlockedFiles.has(parent) || isOwnModule(parent);
}

/** Returns the file path of a URL. Undefined for `node:` and `data:` URLs. */
function filePathOf(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  if (!url.startsWith("file:")) return url.startsWith("/") ? url : undefined;
  const [address] = url.split(/[?#]/, 1);
  return fileURLToPath(address!);
}

let ownRoots: { readonly own: string; readonly packages: ReadonlySet<string> } | undefined;

/** Whether a file belongs to Tollgate or a package that it depends on. */
function isOwnModule(path: string): boolean {
  ownRoots ??= {
    own: realpathSync(findPackageRoot()) + sep,
    packages: new Set(packageFoldersOf(findPackageRoot())),
  };
  const { own, packages } = ownRoots;
  const [, installed] = INSTALLED_PACKAGE.exec(path) ?? [];
  if (installed !== undefined && packages.has(installed)) return true;
  return path.startsWith(own) && !path.slice(own.length).includes(`node_modules${sep}`);
}

/**
 * Whether a file belongs to Tollgate, including another copy that is installed next to a package.
 * The gateway uses itself in place of that copy.
 */
export const isTollgateModule = (path: string): boolean =>
  isOwnModule(path) || path.includes(`${sep}node_modules${sep}tollgate${sep}`);

/** Matches the directory of the package to which a file in `node_modules` belongs. */
const INSTALLED_PACKAGE = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

/** Imports a file with Node itself, under the rules above. */
export const importLocked = (entry: string): Promise<unknown> => import(pathToFileURL(entry).href);
