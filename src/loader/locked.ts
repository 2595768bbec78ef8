// Modules of locked packages. What a package in plugins.lock.yaml loads must be, byte for byte, a file that the lock covers: one of the package,
// of what it declares, or of Tollgate. Node's resolver and loader ask here, so it holds for `import`, `import()`, and `require` alike.
import { readFileSync, realpathSync } from "node:fs";
import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { registerHooks, type RegisterHooksOptions } from "node:module";
import { packageRoot } from "../config/default.ts";
import { digest, packagesOf } from "./tree.ts";

export type LockedFiles = ReadonlyMap<string, string>;

/** By package: its files and their hashes, by real path. */
const locked = new Map<string, LockedFiles>();
/** Files that are not locked and may load what they like: the operator's own, and what those load. */
const open = new Set<string>();
let hooked = false;

/**
 * From now on, modules that are loaded are followed. Called before the first module that is not Tollgate's own: a module that was loaded
 * unseen counts as locked, so that no package can load on behalf of a file that does not exist.
 */
export function followModules(): void {
  if (hooked) return;
  hooked = true;
  registerHooks({ resolve, load });
}

/** Where it was thrown is of no use to an operator. */
function refusal(message: string): Error {
  const error = new Error(message);
  error.stack = error.message;
  return error;
}

/** From now on, this package loads these files only. */
export function lockModules(name: string, files: LockedFiles): void {
  followModules();
  locked.set(name, files);
}

/** `lock: warn` or `off`, or a file of the operator's own: these files may load anything. */
export function openModules(name: string | undefined, files: readonly string[]): void {
  followModules();
  if (name !== undefined) locked.delete(name);
  for (const file of files) open.add(file);
}

const resolve: RegisterHooksOptions["resolve"] = (specifier, context, next) => {
  const parent = pathOf(context.parentURL);
  if (isOpen(parent)) {
    const found = next(specifier, context);
    const path = pathOf(found.url);
    if (path !== undefined && hashesOf(path).length === 0) open.add(path);
    return found;
  }
  // The gateway that runs, whichever copy is installed beside the package.
  if (/^tollgate(\/|$)/.test(specifier))
    return next(specifier, { ...context, parentURL: import.meta.url });
  const found = next(specifier, context);
  const path = pathOf(found.url);
  if (path === undefined || isOwn(path) || hashesOf(path).length > 0) return found;
  throw refusal(
    `plugins.lock.yaml does not cover ${path}, which ${parent ?? "a locked package"} loads. Declare the package that it belongs to under dependencies, then run tollgate plugin add again`,
  );
};

const load: RegisterHooksOptions["load"] = (url, context, next) => {
  const path = pathOf(url);
  const hashes = path === undefined ? [] : hashesOf(path);
  if (path === undefined || hashes.length === 0) return next(url, context);
  const bytes = readFileSync(path);
  if (!hashes.includes(digest(bytes)))
    throw refusal(`${path} has changed since its package was accepted in plugins.lock.yaml`);
  const loaded = next(url, context);
  // The bytes that were hashed are the bytes that run.
  return SOURCES.has(loaded.format ?? "") ? { ...loaded, source: bytes.toString() } : loaded;
};

const SOURCES = new Set(["module", "commonjs", "json"]);

export const isLocked = (file: string): boolean => hashesOf(realpathSync(file)).length > 0;

/** What packages have locked it as; none: it is in no locked package. */
const hashesOf = (path: string): string[] =>
  [...locked.values()].flatMap((files) => files.get(path) ?? []);

/** Whether a module may load anything. */
function isOpen(parent: string | undefined): boolean {
  if (locked.size === 0) return true;
  if (parent === undefined || hashesOf(parent).length > 0) return false;
  return open.has(parent) || isOwn(parent);
}

/** Addresses of Node, and of data, are no files. */
function pathOf(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  if (!url.startsWith("file:")) return url.startsWith("/") ? url : undefined;
  const [address] = url.split(/[?#]/, 1);
  return fileURLToPath(address!);
}

let roots: { readonly own: string; readonly packages: ReadonlySet<string> } | undefined;

/** Of Tollgate itself, or of a package that it depends on. */
function isOwn(path: string): boolean {
  roots ??= {
    own: realpathSync(packageRoot()) + sep,
    packages: new Set(packagesOf(packageRoot())),
  };
  const { own, packages } = roots;
  const [, installed] = INSTALLED.exec(path) ?? [];
  if (installed !== undefined && packages.has(installed)) return true;
  return path.startsWith(own) && !path.slice(own.length).includes(`node_modules${sep}`);
}

/** Tollgate itself, also where another copy of it is installed beside a package: a gateway replaces that one by its own. */
export const isTollgate = (path: string): boolean =>
  isOwn(path) || path.includes(`${sep}node_modules${sep}tollgate${sep}`);

/** The folder of the package that a file in node_modules belongs to. */
const INSTALLED = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

/** As Node imports it, under the same rules: no other loader reads it. */
export const importLocked = (entry: string): Promise<unknown> => import(pathToFileURL(entry).href);
