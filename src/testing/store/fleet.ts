// What several instances of one store promise together, and what a store of one process promises alone, as a fleet of one: a limit is one
// number, a call ends once, and what one instance has changed all others know. Times are now, because such a store may count by a clock
// of its own.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { getFault } from "../../model/error.ts";
import type { StoreEvent } from "../../plugin/store/store-instance.ts";
import type { LimitUsage } from "../../plugin/store/limit.ts";
import type {
  LedgerEntry,
  Reserve,
  Store,
  StoreCommand,
  CommandResult,
} from "../../plugin/store/store.ts";
import { reserveCommand, settleCommand } from "./fixtures.ts";

/** Instances on one new ledger, as the author of a store makes them for one law. */
export interface FleetUnderTest {
  /** Not yet open. Three where several gateways may share the store; one where it belongs to one process. */
  readonly stores: readonly Store[];
  /** This instance's lease is over from now on, though it may live. Absent: there is only one. */
  expireLease?(instance: string): Promise<void>;
  /** Rates are counted by a clock that all instances share, and not by what commands say. */
  readonly usesOwnClock?: boolean;
  /** What the store stands on cannot be reached, until `back`. Absent: it is in this process. */
  disconnect?(): Promise<void>;
  reconnect?(): Promise<void>;
  dispose(): Promise<void>;
}

/** One of them, open. */
export interface FleetInstance {
  readonly name: string;
  readonly store: Store;
  readonly events: readonly StoreEvent[];
  /** In batches of so many, one after the other, as the host does. */
  apply(commands: readonly StoreCommand[], most?: number): Promise<CommandResult[]>;
}

/** A law: its name, and what to do with instances that are open. */
export type FleetLaw = readonly [
  name: string,
  run: (
    all: readonly [FleetInstance, ...FleetInstance[]],
    fleet: Omit<FleetUnderTest, "stores" | "dispose">,
  ) => Promise<void>,
];

/** What a reserve takes of one limit. */
export type FleetClaim = Reserve["claims"][number];

/** Of a budget in all that lasts, unless told. */
export const fleetClaim = (
  scope: string,
  max: bigint,
  take: bigint,
  more: Partial<FleetClaim> = {},
): FleetClaim => ({
  scope,
  unit: "nano_usd",
  max,
  per: "total",
  take,
  ...more,
});

/** A reserve, now. */
export const reserveNow = (attempt: string, claims: readonly FleetClaim[], holdNano = 1_000n) =>
  reserveCommand(attempt, { at: wallClock(), claims, holdNano });
/** Its settle, now. */
export const settleNow = (attempt: string, costNano: bigint) =>
  settleCommand(attempt, { at: wallClock(), costNano });
/** A sign of life. */
export const heartbeatCommand = (): StoreCommand => ({ do: "heartbeat", at: wallClock() });

/** The same work for several instances at once; what each says, one after the other. */
export const onAll = async <T>(
  all: readonly FleetInstance[],
  work: (one: FleetInstance, i: number) => Promise<T>,
): Promise<T[]> => Promise.all(all.map(work));

/** Opens all of them, one after the other. */
export async function openInstances(stores: readonly Store[]): Promise<FleetInstance[]> {
  const all: FleetInstance[] = [];
  for (const [i, store] of stores.entries()) {
    const name = `node-${i + 1}`;
    const news: StoreEvent[] = [];
    await store.open({ instance: name }, (one) => void news.push(one));
    all.push({ name, store, events: news, apply: createApply(store) });
  }
  return all;
}

/** A store is never told a second batch before the first has ended. */
function createApply(store: Store): FleetInstance["apply"] {
  let last: Promise<unknown> = Promise.resolve();
  const batch = (commands: readonly StoreCommand[]) => {
    const next = last.then(() => store.apply(commands));
    last = next.catch(() => {});
    return next;
  };
  return async (commands, most = 64) => {
    const verdicts: CommandResult[] = [];
    for (let i = 0; i < commands.length; i += most)
      verdicts.push(...(await batch(commands.slice(i, i + most))));
    return verdicts;
  };
}

const WAIT_TIMEOUT_MS = 5_000;

/** Until it is so, or too late. */
export async function waitUntil(is: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const end = performance.now() + WAIT_TIMEOUT_MS; !(await is()); await sleep(10))
    assert.ok(performance.now() < end, `${what} took longer than ${WAIT_TIMEOUT_MS} ms`);
}

/** All entries, page by page. */
export async function listEntries(store: Store, size = 100): Promise<LedgerEntry[]> {
  const found: LedgerEntry[] = [];
  let after: string | undefined;
  do {
    const page = await store.listEntries({}, { after, limit: size });
    found.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
}

/** A store may list what it has just written a moment later; until there are so many. */
export async function listEntriesUntil(store: Store, many: number): Promise<LedgerEntry[]> {
  let found: LedgerEntry[] = [];
  await waitUntil(
    async () => (found = await listEntries(store)).length >= many,
    `a listing of ${many} entries`,
  );
  assert.equal(found.length, many);
  return found;
}

/** What there is of an attempt: its kinds of rows, and of a settle how it ended. */
export const rowKinds = (entries: readonly LedgerEntry[], attempt: string): string[] =>
  entries
    .filter((entry) => entry.attempt === attempt)
    .map(({ kind, outcome }) => (kind === "settle" ? outcome : kind));

/** What a limit has used and what open calls hold; undefined: the store does not tell. */
export async function readLimitUsage(
  store: Store,
  of: FleetClaim,
): Promise<readonly bigint[] | undefined> {
  const { take: _, ...limit } = of;
  const [count] = (await store.readLimits?.([limit], wallClock())) ?? ([] as LimitUsage[]);
  return count && [count.used, count.reserved];
}

/** That the instance was taken for dead. */
export const isFenced = (error: unknown): boolean => getFault(error)?.code === "fenced";

/** How many of them were let through. */
export const countAllowed = (verdicts: readonly CommandResult[]): number =>
  verdicts.filter(({ ok }) => ok).length;

/** Names of so many calls. */
export const attemptIds = (many: number, name = "a"): string[] =>
  Array.from({ length: many }, (_, i) => `${name}${i}`);
