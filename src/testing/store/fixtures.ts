// Helpers for the store checks: complete commands and short queries.
import assert from "node:assert/strict";
import { getFault } from "../../model/error.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type {
  StoreCommand,
  LedgerEntry,
  Reserve,
  Settle,
  Store,
  CommandResult,
} from "../../plugin/store/store.ts";

/** A store that its author's test creates for one check, with functions to crash and end it. */
export interface StoreUnderTest {
  /** The store, not yet open. */
  store: Store;
  /**
   * Ends the owner without notice, and returns the store for the next owner, not yet open. For a
   * store that one process uses, it may be the same object.
   */
  crash(): Promise<Store>;
  /**
   * Returns another store on the same ledger, not yet open. Only for stores that several gateways
   * can open.
   */
  openAnother?(): Promise<Store>;
  /**
   * Expires the lease of this instance, although the instance may be running. Only for stores that
   * several gateways can open.
   */
  expireLease?(instance: string): Promise<void>;
  /**
   * Returns an empty store of the same kind on a new ledger, not yet open. Only for stores that can
   * be moved. `end` also closes this store.
   */
  createEmpty?(): Promise<Store>;
  dispose(): Promise<void>;
}

/** Noon on June 1, 2026, a Monday (UTC). */
export const NOON = Date.UTC(2026, 5, 1, 12);

/** Creates a complete reserve command. */
export const reserveCommand = (
  attempt: string,
  more: Partial<Reserve> & { at?: number } = {},
): StoreCommand & Reserve => ({
  do: "reserve",
  at: NOON,
  attempt,
  request: `r-${attempt}`,
  number: 1,
  key: "alice",
  target: { provider: "openai", model: "gpt-6", protocol: "chat-completions", credential: "main" },
  privacy: "off",
  labels: {},
  claims: [],
  holdNano: 1_000n,
  price: "p1",
  ...more,
});

/**
 * Creates a settle command for `reserveCommand`, one second later, with a cost below the
 * reservation.
 */
export const settleCommand = (
  attempt: string,
  more: Partial<Settle> & { at?: number } = {},
): StoreCommand & Settle => ({
  do: "settle",
  at: NOON + 1_000,
  attempt,
  state: "exact",
  usage: { input: 10, output: 20 },
  costNano: 700n,
  outcome: "ok",
  ...more,
});

/** Creates a claim on a budget of Alice. Default: 10,000 nano-dollars in total. */
export const limitClaim = (limit: Partial<Limit>, take: bigint): Limit & { take: bigint } => ({
  scope: "key:alice",
  unit: "nano_usd",
  max: 10_000n,
  per: "total",
  ...limit,
  take,
});

/** The owner that opens the store at the start of a check. */
export const FIRST_OWNER = { instance: "first" };
/** The owner that opens the store after a crash. */
export const SECOND_OWNER = { instance: "second" };

/**
 * A store check: its name, and a function that receives an open store, a function to crash it, and
 * its other instances, if any.
 */
export type Law = readonly [
  name: string,
  run: (
    store: Store,
    crash: () => Promise<Store>,
    others: Pick<StoreUnderTest, "openAnother" | "expireLease" | "createEmpty">,
  ) => Promise<void>,
];

/** Applies one command alone and returns its result. */
export const applyOne = async (store: Store, command: StoreCommand): Promise<CommandResult> =>
  (await store.apply([command]))[0]!;

/** Returns all entries of an attempt. */
export const readEntries = async (store: Store, attempt: string): Promise<readonly LedgerEntry[]> =>
  (await store.listEntries({ attempt })).items;

let probes = 0;

/**
 * Returns the remaining amount of a limit. It reserves with a claim that takes nothing, so it
 * changes nothing except for adding two rows.
 */
export async function readRemaining(
  store: Store,
  limit: Partial<Limit>,
  at = NOON,
): Promise<bigint> {
  const attempt = `probe-${++probes}`;
  const verdict = await applyOne(
    store,
    reserveCommand(attempt, { at, claims: [limitClaim(limit, 0n)] }),
  );
  assert.ok(verdict.ok && verdict.limits);
  await applyOne(store, settleCommand(attempt, { at, state: "void", costNano: 0n, usage: {} }));
  return BigInt(verdict.limits[0]!.remaining);
}

/** Asserts that the batch was rejected as `invalid`. */
export async function assertInvalid(batch: Promise<unknown>): Promise<void> {
  const error = await batch.then(
    () => assert.fail("The batch was not rejected."),
    (e: unknown) => e,
  );
  assert.equal(getFault(error)?.kind, "invalid", String(error));
}
