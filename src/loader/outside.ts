// Plugins that are not imported here: a child imports them and says what they are, or another program answers for them at a socket.
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { PluginKind } from "../plugin/define.ts";
import { problem } from "../config/problems.ts";
import type { LoadPlugin } from "../config/types.ts";
import { describe } from "../isolation/definition.ts";
import { OUTSIDE_KINDS } from "../isolation/what-crosses.ts";
import { definitionIn } from "./definition.ts";
import type { PluginEntry } from "./find.ts";
import type { Graph } from "./graph.ts";
import { packagesOf, type PackageTree } from "./tree.ts";

const SOCKET = "unix:";

export const isSocket = (use: string): boolean => use.startsWith(SOCKET);

export const mayStandOutside = (kind: PluginKind): boolean =>
  (OUTSIDE_KINDS as readonly PluginKind[]).includes(kind);

/** What a child says that a module is, in the form of that module. It may read what the module is made of, and nothing beside it. */
export async function outside(
  { entry, package: of }: Extract<PluginEntry, { entry: string }>,
  { files }: Graph,
  { folder, tree }: { readonly folder: string; readonly tree: PackageTree | undefined },
): Promise<unknown> {
  const real = realpathSync(entry);
  const reads = tree?.folders ?? (of ? packagesOf(of.root) : [...files, ...besideAndAbove(real)]);
  const locked = tree && { name: of!.name, files: Object.fromEntries(tree.files) };
  return { default: await describe({ entry: real, reads, folder, locked }) };
}

/** Where Node looks for what a file imports by name, and for what sort of file it is. */
function besideAndAbove(file: string): string[] {
  const found: string[] = [];
  for (let at = dirname(file); ; at = dirname(at)) {
    found.push(join(at, "package.json"), join(at, "node_modules"));
    if (dirname(at) === at) return found.filter((each) => existsSync(each));
  }
}

/** `unix:./guard.sock`: relative to the file that names it. */
export async function atSocket(
  use: string,
  kind: PluginKind,
  fromFile: string,
): ReturnType<LoadPlugin> {
  const path = use.slice(SOCKET.length);
  if (!/^\.{0,2}\/[^\0]{1,100}$/.test(path)) return { problem: problem.socketPath(use) };
  if (!mayStandOutside(kind)) return { problem: problem.kindOutside(use, kind) };
  const socket = resolve(dirname(fromFile), path);
  let said: unknown;
  try {
    said = await describe({ socket });
  } catch (error) {
    return { problem: problem.importFailed(use, (error as Error).message) };
  }
  const checked = definitionIn({ default: said }, kind, use);
  return "words" in checked ? { problem: checked.words } : { ...checked, from: use };
}
