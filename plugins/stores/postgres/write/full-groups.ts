// Groups that had no place for another member in the last second. New members are denied without a
// lock of the group. A flood of them costs the database one look-up of their meters per batch, and
// one list of the group's members per second. Without the cache, each batch locks and counts the
// group. The cache only denies, so it admits nothing wrongly.
import type { CommandResult, GroupMember, Reserve, StoreCommand } from "tollgate/plugin";
import { createLedgerRules, mergeClaims, type Claim } from "tollgate/store";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import { listMembersSql, presentMetersSql } from "../schema/meter-sweep-sql.ts";
import { EMPTY_JOURNAL } from "./result-replay.ts";

/** How long a group counts as full, in milliseconds. A place that is freed is used after this time. */
const FULL_MS = 1_000;
/** Maximum number of groups in the cache. */
const MAX_GROUPS = 10_000;
/** Number of listed members above which the cache is cleared. */
const MAX_LISTED = 200_000;

interface FullGroup {
  /** The maximum for which the group was full. A higher maximum is not denied. */
  readonly maxMembers: number;
  readonly until: number;
  /** Scopes of all members. Unset until a new member of the group is looked up. */
  members?: ReadonlySet<string>;
}

/** Whether this node knows that the member of a meter is present in its group. */
interface KnownMembers {
  isPresent(meterId: string): boolean;
}

/** Connection, time, and open calls, with which a batch is checked. */
interface FullGroupsContext {
  readonly sql: RunSql;
  readonly schema: string;
  /** Number of the connection. A new connection may lead to another database. */
  readonly made: number;
  readonly at: number;
  readonly openCalls: ReadonlyMap<string, unknown>;
  readonly known: KnownMembers;
}

export class FullGroups {
  readonly #groups = new Map<string, FullGroup>();
  #connectionId = 0;
  /** Number of members that were listed since the cache was cleared. */
  #listed = 0;

  /** Records the groups that denied calls of a batch because they are full. */
  record(
    batch: readonly StoreCommand[],
    results: readonly CommandResult[],
    at: number,
    now = performance.now(),
  ): void {
    batch.forEach((command, i) => {
      const result = results[i];
      if (command.do !== "reserve" || !result || result.ok || !result.isFull) return;
      for (const { meter, maxMembers = 0 } of mergeClaims(command.claims, at, NO_METERS)) {
        if (meter.member?.scope !== result.denied.scope) continue;
        if (this.#groups.size >= MAX_GROUPS) this.clear();
        this.#groups.set(meter.member.group, { maxMembers, until: now + FULL_MS });
      }
    });
  }

  /**
   * Adds the denials of a batch to `results`. Members that are present are not denied: another
   * gateway may have admitted them after the group was recorded.
   */
  async denyNewMembers(
    batch: readonly StoreCommand[],
    results: Map<string, CommandResult>,
    { sql, schema, made, at, openCalls, known }: FullGroupsContext,
  ): Promise<void> {
    if (made !== this.#connectionId) this.clear();
    this.#connectionId = made;
    if (this.#groups.size === 0) return;
    const now = performance.now();
    const doubtful = batch.flatMap((command) => {
      if (command.do !== "reserve" || command.job) return [];
      if (openCalls.has(command.attempt) || results.has(command.attempt)) return [];
      const claims = mergeClaims(command.claims, at, NO_METERS);
      const members = claims
        .filter((claim) => this.#mayBeDenied(claim, known, now))
        .map(({ meter }) => meter.member!);
      return members.length > 0 ? [{ command, claims, members }] : [];
    });
    if (doubtful.length === 0) return;
    const claims = doubtful.flatMap((each) => each.claims);
    await this.#listMembers(sql, schema, claims, at);
    const present = await readPresentScopes(sql, schema, claims, at);
    for (const { command, members } of doubtful) {
      const groups = members
        .filter((member) => !present.has(member.scope) && this.#isMissing(member))
        .map(({ group }) => group);
      if (groups.length > 0) results.set(command.attempt, denialOf(command, groups, at));
    }
  }

  #mayBeDenied({ meter, maxMembers }: Claim, known: KnownMembers, now: number): boolean {
    if (maxMembers === undefined || !meter.member || known.isPresent(meter.id)) return false;
    const { group } = meter.member;
    const full = this.#groups.get(group);
    if (!full || maxMembers > full.maxMembers) return false;
    if (now < full.until) return true;
    this.#groups.delete(group);
    return false;
  }

  /**
   * Lists the members of full groups once. A member may be present only by a meter that its call
   * does not claim: of a window that has ended, or of a limit that was replaced.
   */
  async #listMembers(
    sql: RunSql,
    schema: string,
    claims: readonly Claim[],
    at: number,
  ): Promise<void> {
    const unlisted = new Map<string, Set<string>>();
    for (const { meter } of claims) {
      const full = meter.member && this.#groups.get(meter.member.group);
      if (full && !full.members) unlisted.set(meter.member.group, new Set());
    }
    if (unlisted.size === 0) return;
    const rows = await sql({
      text: listMembersSql(schema),
      values: [textArray([...unlisted.keys()]), String(Math.floor(at))],
    });
    if (this.#listed > 0 && this.#listed + rows.length > MAX_LISTED) this.clear();
    this.#listed += rows.length;
    for (const { name, scope } of rows) unlisted.get(name!)!.add(scope!);
    for (const [group, members] of unlisted) {
      const full = this.#groups.get(group);
      if (full) full.members = members;
    }
  }

  /** Whether the members of the group were listed, and this one is not among them. */
  #isMissing({ group, scope }: GroupMember): boolean {
    return this.#groups.get(group)?.members?.has(scope) === false;
  }

  /** Clears the cache, because the state of the groups is unknown. */
  clear(): void {
    this.#groups.clear();
    this.#listed = 0;
  }
}

/**
 * Returns the scopes of the members that one of the claimed meters keeps in its group. Another
 * gateway may have admitted them after the members of the group were listed.
 */
async function readPresentScopes(
  sql: RunSql,
  schema: string,
  claims: readonly Claim[],
  at: number,
): Promise<ReadonlySet<string>> {
  const scopeById = new Map(
    claims.flatMap(({ meter, scope }) => (meter.member ? [[meter.id, scope] as const] : [])),
  );
  const rows = await sql({
    text: presentMetersSql(schema),
    values: [textArray([...scopeById.keys()]), String(Math.floor(at))],
  });
  return new Set(rows.map(({ id }) => scopeById.get(id!)!));
}

/** Returns the denial that the ledger rules create if these groups have no place. */
function denialOf(command: Reserve, groups: readonly string[], at: number): CommandResult {
  const rules = createLedgerRules(EMPTY_JOURNAL, () => "");
  for (const group of groups) rules.setMembersElsewhere(group, Number.MAX_SAFE_INTEGER);
  const { attempt, claims } = command;
  return rules.apply({ do: "reserve", at, attempt, claims });
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();
