// Loads plugins that are not imported into this process: a child process imports and describes
// them, or another program serves them on a socket.
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { PluginKind } from "../plugin/define.ts";
import { problem } from "../config/problems.ts";
import type { LoadPlugin } from "../config/gateway-config.ts";
import { describePlugin } from "../isolation/isolated-definition.ts";
import { ISOLATABLE_KINDS } from "../isolation/serialization.ts";
import { validateDefinition } from "./validate-definition.ts";
import type { ResolvedPlugin } from "./resolve-plugin.ts";
import type { ImportGraph } from "./import-graph.ts";
import { packageFoldersOf, type PackageTree } from "./package-tree.ts";

const SOCKET_PREFIX = "unix:";

export const isSocketSpecifier = (use: string): boolean => use.startsWith(SOCKET_PREFIX);

export const canRunOutOfProcess = (kind: PluginKind): boolean =>
  (ISOLATABLE_KINDS as readonly PluginKind[]).includes(kind);

/**
 * Returns the description of a module from a child process, in the form of that module. The child
 * may read only the files that the module consists of.
 */
export async function loadInChild(
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
export async function loadAtSocket(
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
