// Groups that had no place for another member a moment ago, with the members that they have. New
// members are denied without a query. A flood of them then costs the database one count per second,
// instead of a lock of the group for each batch. The cache only denies, so it admits nothing wrongly.
import type { CommandResult, Reserve, StoreCommand } from "tollgate/plugin";
import { createLedgerRules, mergeClaims, type Claim } from "tollgate/store";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import { memberScopesSql } from "../schema/meter-sweep-sql.ts";
import { EMPTY_JOURNAL } from "./result-replay.ts";

/** How long a group counts as full, in milliseconds. A place that is freed is used after this time. */
const FULL_MS = 1_000;
/** Maximum number of members in the cache, of all groups together. */
const MAX_MEMBERS = 200_000;

interface FullGroup {
  /** The maximum for which the group was full. A higher maximum is not denied. */
  readonly maxMembers: number;
  readonly members: ReadonlySet<string>;
  readonly until: number;
}

/** Whether this node knows that the member of a meter is present in its group. */
interface KnownMembers {
  isPresent(meterId: string): boolean;
}

export class FullGroups {
  readonly #groups = new Map<string, FullGroup>();
  #memberCount = 0;
  #connectionId = 0;

  /** Reads the members of the groups that denied calls of a batch because they are full. */
  async record(
    sql: RunSql,
    schema: string,
    batch: readonly StoreCommand[],
    results: readonly CommandResult[],
    at: number,
  ): Promise<void> {
    const full = new Map<string, number>();
    batch.forEach((command, i) => {
      const result = results[i];
      if (command.do !== "reserve" || !result || result.ok || !result.isFull) return;
      for (const { meter, maxMembers = 0 } of mergeClaims(command.claims, at, NO_METERS))
        if (meter.member?.scope === result.denied.scope)
          full.set(meter.member.group, Math.max(maxMembers, full.get(meter.member.group) ?? 0));
    });
    if (full.size === 0) return;
    const rows = await sql({
      text: memberScopesSql(schema),
      values: [textArray([...full.keys()]), String(Math.floor(at))],
    });
    if (this.#memberCount + rows.length > MAX_MEMBERS) this.clear();
    const until = performance.now() + FULL_MS;
    for (const [group, maxMembers] of full) {
      const members = new Set(
        rows.flatMap(({ name, scope }) => (name === group && scope ? [scope] : [])),
      );
      // A member has left since, so another one may join.
      if (members.size < maxMembers) continue;
      this.#memberCount += members.size - (this.#groups.get(group)?.members.size ?? 0);
      this.#groups.set(group, { maxMembers, members, until });
    }
  }

  /**
   * Adds the denials of a batch to `results`. After a new connection (`made`), the cache is cleared
   * before, because the connection may lead to another database.
   */
  denyNewMembers(
    batch: readonly StoreCommand[],
    results: Map<string, CommandResult>,
    {
      made,
      at,
      openCalls,
      known,
      now = performance.now(),
    }: {
      readonly made: number;
      readonly at: number;
      readonly openCalls: ReadonlyMap<string, unknown>;
      readonly known: KnownMembers;
      readonly now?: number;
    },
  ): void {
    if (made !== this.#connectionId) this.clear();
    this.#connectionId = made;
    if (this.#groups.size === 0) return;
    for (const c of batch) {
      if (c.do !== "reserve" || c.job || openCalls.has(c.attempt) || results.has(c.attempt))
        continue;
      const groups = mergeClaims(c.claims, at, NO_METERS).flatMap((claim) =>
        this.#isDenied(claim, known, now) ? [claim.meter.member!.group] : [],
      );
      if (groups.length > 0) results.set(c.attempt, denialOf(c, groups, at));
    }
  }

  #isDenied({ meter, maxMembers }: Claim, known: KnownMembers, now: number): boolean {
    if (maxMembers === undefined || !meter.member || known.isPresent(meter.id)) return false;
    const { group, scope } = meter.member;
    const full = this.#groups.get(group);
    if (!full || maxMembers > full.maxMembers) return false;
    if (now < full.until) return !full.members.has(scope);
    this.#groups.delete(group);
    this.#memberCount -= full.members.size;
    return false;
  }

  /** Clears the cache, because the state of the groups is unknown. */
  clear(): void {
    this.#groups.clear();
    this.#memberCount = 0;
  }
}

/** Returns the denial that the ledger rules create if these groups have no place. */
function denialOf(command: Reserve, groups: readonly string[], at: number): CommandResult {
  const rules = createLedgerRules(EMPTY_JOURNAL, () => "");
  for (const group of groups) rules.setMembersElsewhere(group, Number.MAX_SAFE_INTEGER);
  const { attempt, claims } = command;
  return rules.apply({ do: "reserve", at, attempt, claims });
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();
