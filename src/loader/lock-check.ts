// Checks, before any code of a package runs, whether an operator has accepted it: by the list of
// allowed packages, and by the lock file. Files of the operator and plugins that ship with Tollgate
// are not locked.
import { problem, type ProblemText } from "../config/problems.ts";
import { readPluginLock, type LockedPlugin, type LockedDefinition } from "../config/plugin-lock.ts";
import type { PluginTrust } from "../config/sections/plugin-trust.ts";
import { publicErrorText } from "../model/error.ts";
import { readPackageTree, type PackageTree } from "./package-tree.ts";

export type LockCheck =
  | { readonly rejection: ProblemText }
  | {
      readonly warning?: ProblemText | undefined;
      /** The lock entry, which matches the package byte for byte. */
      readonly locked?: LockedPlugin | undefined;
      /** The files that may be loaded. Set together with `locked`. */
      readonly tree?: PackageTree | undefined;
    };

/** Checks a package. `root`: directory in which the package with this name was found. */
export function checkLock(name: string, root: string, trust: PluginTrust): LockCheck {
  if (trust.allowedPackages && !trust.allowedPackages.includes(name))
    return { rejection: problem.pluginNotAllowed(name) };
  if (trust.lock === "off") return {};
  let lock: ReturnType<typeof readPluginLock>;
  let tree: PackageTree;
  try {
    lock = readPluginLock(trust.configFile);
    if (!lock && trust.lock !== "required")
      return { warning: problem.pluginNotLocked(name, "note") };
    tree = readPackageTree(root);
  } catch (error) {
    return { rejection: problem.lockUnreadable(publicErrorText(error)) };
  }
  const accepted = lock?.get(name);
  const wrong = !accepted
    ? problem.pluginNotLocked(name)
    : accepted.tree === tree.hash
      ? undefined
      : problem.pluginChanged(name, describeChanges(accepted, tree));
  if (!wrong) return { locked: accepted, tree };
  return trust.lock === "warn"
    ? { warning: { ...wrong, severity: "warning" } }
    : { rejection: wrong };
}

/**
 * Checks the declaration of a package whose files match the lock. The declaration must match too.
 */
export function checkDeclaration(
  { name, path }: { readonly name: string; readonly path: string },
  locked: LockedPlugin,
  definition: DeclaredDefinition,
): ProblemText | undefined {
  const why = describeDifference(locked.plugins?.[path], definition);
  return why === undefined ? undefined : problem.pluginChanged(name, why);
}

/** Describes the changes: "left-pad@1.3.0 has changed, right-pad@1.0.0 is new". */
export function describeChanges(accepted: LockedPlugin, { packages }: PackageTree): string {
  const before = new Map(Object.entries(accepted.packages ?? {}));
  const changes = [
    ...[...packages].flatMap(([id, hash]) =>
      !before.has(id) ? [`${id} is new`] : before.get(id) === hash ? [] : [`${id} has changed`],
    ),
    ...[...before.keys()].flatMap((id) => (packages.has(id) ? [] : [`${id} is gone`])),
  ];
  const some = changes.slice(0, 5).join(", ");
  return changes.length > 5 ? `${some}, and ${changes.length - 5} more` : some;
}

// Describes the declarations of a plugin definition, in the form that an operator accepts and that
// the lock file contains. The same code can declare different things in another environment, so the
// declaration is compared again when the plugin is mounted.

/** A definition, or its JSON from another process, in which functions are null. */
export interface DeclaredDefinition {
  readonly "~tollgate": string;
  readonly api: number;
  readonly needs?: {
    readonly origins?: unknown;
    readonly metadata?: unknown;
    readonly env?: unknown;
    readonly files?: unknown;
  };
  readonly sends?: unknown;
}

export function toLockedDefinition(definition: DeclaredDefinition): LockedDefinition {
  const { "~tollgate": kind, api, needs = {}, sends } = definition;
  const { origins, metadata, env, files } = needs;
  return {
    kind,
    api,
    needs: [
      ...toList(origins, "addresses from its options"),
      ...(metadata ? ["the cloud's metadata service"] : []),
      ...toList(env, "variables of its options").map((name) => `the variable ${name}`),
      ...toList(files, "files from its options"),
    ],
    ...(sends !== undefined && {
      sends: sends === "nowhere" ? sends : JSON.stringify(sends),
    }),
  };
}

const toList = (what: unknown, otherwise: string): string[] =>
  what === undefined ? [] : Array.isArray(what) ? what.map(String) : [otherwise];

/**
 * Returns the part of a definition's declaration that exceeds the accepted declaration. Undefined
 * if the declaration is accepted. A declaration that needs less than was accepted is also accepted.
 */
function describeDifference(
  accepted: LockedDefinition | undefined,
  definition: DeclaredDefinition,
): string | undefined {
  if (!accepted) return "it includes a plugin where it had none";
  const now = toLockedDefinition(definition);
  if (now.kind !== accepted.kind) return `it is a ${now.kind}`;
  if (now.api !== accepted.api) return `it uses api ${now.api}`;
  const more = now.needs.filter((need) => !accepted.needs.includes(need));
  if (more.length > 0) return `it needs ${more.join(", ")}`;
  if (now.sends !== accepted.sends) return `it sends user content to a third party: ${now.sends}`;
  return undefined;
}
