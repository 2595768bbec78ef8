// Modules of locked packages. What a package in plugins.lock.yaml loads must be, byte for byte, a file that the lock covers: one of the package,
// of what it declares, or of Tollgate. Node's resolver and loader ask here, so it holds for `import`, `import()`, and `require` alike.
import { readFileSync, realpathSync } from "node:fs";
import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { registerHooks, type RegisterHooksOptions } from "node:module";
import { findPackageRoot } from "../config/source/default-config.ts";
import { integrityOf, packageFoldersOf } from "./package-tree.ts";

export type LockedFiles = ReadonlyMap<string, string>;

/** By package: its files and their hashes, by real path. */
const lockedPackages = new Map<string, LockedFiles>();
/** Files that are not locked and may load what they like: the operator's own, and what those load. */
const unlockedFiles = new Set<string>();
let isHookInstalled = false;

/**
 * From now on, modules that are loaded are followed. Called before the first module that is not Tollgate's own: a module that was loaded
 * unseen counts as locked, so that no package can load on behalf of a file that does not exist.
 */
export function installLockHooks(): void {
  if (isHookInstalled) return;
  isHookInstalled = true;
  registerHooks({ resolve: resolveHook, load: loadHook });
}

/** Where it was thrown is of no use to an operator. */
function lockError(message: string): Error {
  const error = new Error(message);
  error.stack = error.message;
  return error;
}

/** From now on, this package loads these files only. */
export function lockModules(name: string, files: LockedFiles): void {
  installLockHooks();
  lockedPackages.set(name, files);
}

/** `lock: warn` or `off`, or a file of the operator's own: these files may load anything. */
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
  // The gateway that runs, whichever copy is installed beside the package.
  if (/^tollgate(\/|$)/.test(specifier))
    return next(specifier, { ...context, parentURL: import.meta.url });
  const found = next(specifier, context);
  const path = filePathOf(found.url);
  if (path === undefined || isOwnModule(path) || lockedHashesOf(path).length > 0) return found;
  throw lockError(
    `plugins.lock.yaml does not cover ${path}, which ${parent ?? "a locked package"} loads. Declare the package that it belongs to under dependencies, then run tollgate plugin add again`,
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
  // The bytes that were hashed are the bytes that run.
  return SOURCE_FORMATS.has(loaded.format ?? "") ? { ...loaded, source: bytes.toString() } : loaded;
};

const SOURCE_FORMATS = new Set(["module", "commonjs", "json"]);

export const isLocked = (file: string): boolean => lockedHashesOf(realpathSync(file)).length > 0;

/** What packages have locked it as; none: it is in no locked package. */
const lockedHashesOf = (path: string): string[] =>
  [...lockedPackages.values()].flatMap((files) => files.get(path) ?? []);

/** Whether a module may load anything. */
function isUnlocked(parent: string | undefined): boolean {
  if (lockedPackages.size === 0) return true;
  if (parent === undefined || lockedHashesOf(parent).length > 0) return false;
  return unlockedFiles.has(parent) || isOwnModule(parent);
}

/** Addresses of Node, and of data, are no files. */
function filePathOf(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  if (!url.startsWith("file:")) return url.startsWith("/") ? url : undefined;
  const [address] = url.split(/[?#]/, 1);
  return fileURLToPath(address!);
}

let ownRoots: { readonly own: string; readonly packages: ReadonlySet<string> } | undefined;

/** Of Tollgate itself, or of a package that it depends on. */
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

/** Tollgate itself, also where another copy of it is installed beside a package: a gateway replaces that one by its own. */
export const isTollgateModule = (path: string): boolean =>
  isOwnModule(path) || path.includes(`${sep}node_modules${sep}tollgate${sep}`);

/** The folder of the package that a file in node_modules belongs to. */
const INSTALLED_PACKAGE = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

/** As Node imports it, under the same rules: no other loader reads it. */
export const importLocked = (entry: string): Promise<unknown> => import(pathToFileURL(entry).href);
