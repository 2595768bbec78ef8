// Whether an operator has accepted a package, before a line of it runs: by the list of those that may be mounted, and by what was
// locked. A path is the operator's own file, and what comes with Tollgate came with it: neither is locked.
import { problem, type ProblemText } from "../config/problems.ts";
import { readPluginLock, type LockedPlugin } from "../config/plugin-lock.ts";
import type { PluginTrust } from "../config/plugin-trust.ts";
import { sayable } from "../model/error.ts";
import { stranger, type StatedDefinition } from "./stated.ts";
import { treeOf, type PackageTree } from "./tree.ts";

export type Acceptance =
  | { readonly refused: ProblemText }
  | {
      readonly remark?: ProblemText | undefined;
      /** What it was when it was accepted, to the byte. */
      readonly locked?: LockedPlugin | undefined;
      /** With `locked`: what may be loaded of it. */
      readonly tree?: PackageTree | undefined;
    };

/** `root`: the folder of the package that was found under this name. */
export function acceptance(name: string, root: string, trust: PluginTrust): Acceptance {
  if (trust.allow && !trust.allow.includes(name))
    return { refused: problem.pluginNotAllowed(name) };
  if (trust.lock === "off") return {};
  let lock: ReturnType<typeof readPluginLock>;
  let tree: PackageTree;
  try {
    lock = readPluginLock(trust.file);
    if (!lock && trust.lock !== "required")
      return { remark: problem.pluginNotLocked(name, "note") };
    tree = treeOf(root);
  } catch (error) {
    return { refused: problem.lockUnreadable(sayable(error)) };
  }
  const accepted = lock?.get(name);
  const wrong = !accepted
    ? problem.pluginNotLocked(name)
    : accepted.tree === tree.hash
      ? undefined
      : problem.pluginChanged(name, changesOf(accepted, tree));
  if (!wrong) return { locked: accepted, tree };
  return trust.lock === "warn" ? { remark: { ...wrong, severity: "warning" } } : { refused: wrong };
}

/** Its bytes are what was accepted: so must be what they say. */
export function saysOther(
  { name, path }: { readonly name: string; readonly path: string },
  locked: LockedPlugin,
  definition: StatedDefinition,
): ProblemText | undefined {
  const why = stranger(locked.plugins?.[path], definition);
  return why === undefined ? undefined : problem.pluginChanged(name, why);
}

/** "left-pad@1.3.0 has changed, right-pad@1.0.0 is new". */
export function changesOf(accepted: LockedPlugin, { packages }: PackageTree): string {
  const before = new Map(Object.entries(accepted.packages ?? {}));
  const said = [
    ...[...packages].flatMap(([id, hash]) =>
      !before.has(id) ? [`${id} is new`] : before.get(id) === hash ? [] : [`${id} has changed`],
    ),
    ...[...before.keys()].flatMap((id) => (packages.has(id) ? [] : [`${id} is gone`])),
  ];
  const some = said.slice(0, 5).join(", ");
  return said.length > 5 ? `${some}, and ${said.length - 5} more` : some;
}
