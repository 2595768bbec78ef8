// What a definition says of itself, in the words that an operator accepts and the lock keeps. The same bytes can say other things in another
// environment: so it is compared once more with what is mounted.
import type { LockedDefinition } from "../config/plugin-lock.ts";

/** A definition, or its JSON as another process has said it: a function is null there. */
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
      ...toList(origins, "addresses of its options"),
      ...(metadata ? ["the cloud's metadata service"] : []),
      ...toList(env, "variables of its options").map((name) => `the variable ${name}`),
      ...toList(files, "files of its options"),
    ],
    ...(sends !== undefined && {
      sends: sends === "nowhere" ? sends : JSON.stringify(sends),
    }),
  };
}

const toList = (what: unknown, otherwise: string): string[] =>
  what === undefined ? [] : Array.isArray(what) ? what.map(String) : [otherwise];

/** Undefined: it says what was accepted. Otherwise what it says now. To need less than was accepted is no change. */
export function describeDifference(
  accepted: LockedDefinition | undefined,
  definition: DeclaredDefinition,
): string | undefined {
  if (!accepted) return "it brings a plugin where it had none";
  const now = toLockedDefinition(definition);
  if (now.kind !== accepted.kind) return `it is a ${now.kind}`;
  if (now.api !== accepted.api) return `it speaks api ${now.api}`;
  const more = now.needs.filter((need) => !accepted.needs.includes(need));
  if (more.length > 0) return `it needs ${more.join(", ")}`;
  if (now.sends !== accepted.sends) return `it sends what people wrote elsewhere: ${now.sends}`;
  return undefined;
}
