// Guarantees of several instances of one store. A limit has one count, a call ends once, and all
// instances see each other's changes. A store of one process must give the same guarantees as a
// fleet with one instance. The checks use the current time, because such a store may count limits
// by its own clock.
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

/** Instances on one new ledger, which the author's test creates for one check. */
export interface FleetUnderTest {
  /**
   * Stores, not yet open: three if several gateways can share the store, or one if it belongs to
   * one process.
   */
  readonly stores: readonly Store[];
  /**
   * Expires the lease of this instance, although it may be running. Unset if there is only one
   * instance.
   */
  expireLease?(instance: string): Promise<void>;
  /**
   * Whether rates are counted by a clock that all instances share, and not by the times of
   * commands.
   */
  readonly usesOwnClock?: boolean;
  /**
   * Makes the database of the store unreachable until `reconnect`. Unset if the store is in this
   * process.
   */
  disconnect?(): Promise<void>;
  reconnect?(): Promise<void>;
  dispose(): Promise<void>;
}

/** One open instance. */
export interface FleetInstance {
  readonly name: string;
  readonly store: Store;
  readonly events: readonly StoreEvent[];
  /** Applies the commands in batches of at most `most`, one after the other, as the host does. */
  apply(commands: readonly StoreCommand[], most?: number): Promise<CommandResult[]>;
}

/** A fleet check: its name, and a function that receives the open instances. */
export type FleetLaw = readonly [
  name: string,
  run: (
    all: readonly [FleetInstance, ...FleetInstance[]],
    fleet: Omit<FleetUnderTest, "stores" | "dispose">,
  ) => Promise<void>,
];

/** Amount that a reserve takes of one limit. */
export type FleetClaim = Reserve["claims"][number];

/** Creates a claim on a limit. Default: a budget in total. */
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

/** Creates a reserve command with the current time. */
export const reserveNow = (attempt: string, claims: readonly FleetClaim[], holdNano = 1_000n) =>
  reserveCommand(attempt, { at: wallClock(), claims, holdNano });
/** Creates the matching settle command with the current time. */
export const settleNow = (attempt: string, costNano: bigint) =>
  settleCommand(attempt, { at: wallClock(), costNano });
/** Creates a heartbeat command. */
export const heartbeatCommand = (): StoreCommand => ({ do: "heartbeat", at: wallClock() });

/** Runs the same work on several instances concurrently and returns their results in order. */
export const onAll = async <T>(
  all: readonly FleetInstance[],
  work: (one: FleetInstance, i: number) => Promise<T>,
): Promise<T[]> => Promise.all(all.map(work));

/** Opens all instances, one after the other. */
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

/** A store receives a batch only after the previous one has ended. */
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

/** Waits until the condition is true. Throws if it takes too long. */
export async function waitUntil(is: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const end = performance.now() + WAIT_TIMEOUT_MS; !(await is()); await sleep(10))
    assert.ok(performance.now() < end, `${what} took longer than ${WAIT_TIMEOUT_MS} ms`);
}

/** Returns all entries, page by page. */
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

/**
 * Returns all entries when there are `many` of them, because a store may list new rows with a
 * delay.
 */
export async function listEntriesUntil(store: Store, many: number): Promise<LedgerEntry[]> {
  let found: LedgerEntry[] = [];
  await waitUntil(
    async () => (found = await listEntries(store)).length >= many,
    `a listing of ${many} entries`,
  );
  assert.equal(found.length, many);
  return found;
}

/** Returns the kinds of rows of an attempt. For a settle row, returns its outcome. */
export const rowKinds = (entries: readonly LedgerEntry[], attempt: string): string[] =>
  entries
    .filter((entry) => entry.attempt === attempt)
    .map(({ kind, outcome }) => (kind === "settle" ? outcome : kind));

/**
 * Returns the used amount and the reservations of a limit. Undefined if the store does not report
 * them.
 */
export async function readLimitUsage(
  store: Store,
  of: FleetClaim,
): Promise<readonly bigint[] | undefined> {
  const { take: _, ...limit } = of;
  const [count] = (await store.readLimits?.([limit], wallClock())) ?? ([] as LimitUsage[]);
  return count && [count.used, count.reserved];
}

/** Whether the error means that the instance was fenced. */
export const isFenced = (error: unknown): boolean => getFault(error)?.code === "fenced";

/** Returns the number of accepted commands. */
export const countAllowed = (verdicts: readonly CommandResult[]): number =>
  verdicts.filter(({ ok }) => ok).length;

/** Returns the IDs of `many` attempts. */
export const attemptIds = (many: number, name = "a"): string[] =>
  Array.from({ length: many }, (_, i) => `${name}${i}`);
