// Describes what a plugin definition declares, in the form that an operator accepts and the lock
// file stores. The same code can declare other things in another environment, so the declaration is
// compared again when the plugin is mounted.
import type { LockedDefinition } from "../config/plugin-lock.ts";

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
 * Returns what a definition declares beyond the accepted declaration. Undefined: it matches.
 * Needing less than was accepted is not a difference.
 */
export function describeDifference(
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
