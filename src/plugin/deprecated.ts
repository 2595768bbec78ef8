// Members of the contract that are to go. Each works as it did for two minor versions and six months at least, and its type says the same
// words as `@deprecated`. A plugin that has one is told when it is mounted, and by `tollgate check`.
import type { PluginKind } from "./define.ts";

/** One of them, and how its author does without it. */
export interface DeprecatedMember {
  /** Whose it is; absent: any kind's. */
  readonly kind?: PluginKind;
  /** Where it stands: in the definition, in what `setup` gives, in one of its endpoints, in one of its routes. */
  readonly part: "definition" | "made" | "endpoint" | "route";
  readonly member: string;
  /** The minor version that said so first: "0.3". */
  readonly since: string;
  /** The line to write instead. */
  readonly replacement: string;
}

/** None yet. */
export const DEPRECATED: readonly DeprecatedMember[] = [];

/** Those that this part of a plugin of this kind has. */
export function findDeprecated(
  kind: PluginKind,
  part: DeprecatedMember["part"],
  object: object,
): DeprecatedMember[] {
  return DEPRECATED.filter(
    (each) =>
      each.part === part &&
      (each.kind === undefined || each.kind === kind) &&
      (object as Readonly<Record<string, unknown>>)[each.member] !== undefined,
  );
}

/** Of what a setup gave, its endpoints and its routes: each once, however many of them have it. */
export function findDeprecatedInSetupResult(kind: PluginKind, made: object): DeprecatedMember[] {
  const { endpoints, routes } = made as { endpoints?: unknown; routes?: unknown };
  const inside = (part: "endpoint" | "route", list: unknown) =>
    (Array.isArray(list) ? (list as unknown[]) : []).flatMap((each) =>
      typeof each === "object" && each !== null ? findDeprecated(kind, part, each) : [],
    );
  return [
    ...new Set([
      ...findDeprecated(kind, "made", made),
      ...inside("endpoint", endpoints),
      ...inside("route", routes),
    ]),
  ];
}
