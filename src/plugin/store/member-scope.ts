// Scopes whose members appear at run time, such as the sessions of a client. A member exists while
// one of its meters counts something. The first call of a member creates its meters in the same
// atomic step in which it is reserved, so parallel first calls cannot overrun a limit.
//
// The scope of a member is ~<group>~<idle minutes>~<member>. The group and the idle time are part
// of the scope, so a store needs no further data to bound a group and to expire its members. The
// member is a hash: no meter contains the value that a client sent.
import { fail } from "../../model/error.ts";

const MEMBER_SCOPE = /^~[\w.:-]{1,128}~[1-9]\d{0,5}~[\w-]{1,64}$/;
const MARK = "~";
const MINUTE_MS = 60_000;

/** A member of a group, as its scope describes it. */
export interface GroupMember {
  /** Name of the group. */
  readonly group: string;
  /** Scope of the member's limits. */
  readonly scope: string;
  /** Time without a call after which a `total` window of the member starts again. */
  readonly idleMs: number;
}

/**
 * Creates the scope of a member. `id` identifies the member within the group. Throws if a part
 * contains other characters than letters, digits, and a few separators.
 */
export function formatMemberScope(group: string, idleMs: number, id: string): string {
  const scope = `${MARK}${group}${MARK}${Math.ceil(idleMs / MINUTE_MS)}${MARK}${id}`;
  return isMemberScope(scope) ? scope : fail("internal", `${scope} is not the scope of a member.`);
}

/** Whether a scope is reserved for members of groups. */
export const isReservedScope = (scope: string): boolean => scope.startsWith(MARK);

/** Scopes of members that were checked. A member's calls follow each other. */
const CHECKED_SCOPES = new Set<string>();
const MAX_CHECKED_SCOPES = 10_000;

/** Whether a scope is the scope of a member. */
export function isMemberScope(scope: string): boolean {
  if (CHECKED_SCOPES.has(scope)) return true;
  if (!MEMBER_SCOPE.test(scope)) return false;
  if (CHECKED_SCOPES.size >= MAX_CHECKED_SCOPES) CHECKED_SCOPES.clear();
  CHECKED_SCOPES.add(scope);
  return true;
}

/** Parses the scope of a member. Returns undefined for any other scope. */
export function parseMemberScope(scope: string): GroupMember | undefined {
  if (!isReservedScope(scope)) return undefined;
  const [, group = "", minutes] = scope.split(MARK, 3);
  return { group, scope, idleMs: Number(minutes) * MINUTE_MS };
}
