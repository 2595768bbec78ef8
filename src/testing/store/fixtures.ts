// What every law of a store needs: commands with everything filled in, and short questions.
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

/** A store as its author's test makes it for one law, with ways to kill and to end it. */
export interface StoreUnderTest {
  /** Not yet open. */
  store: Store;
  /** The owner dies without a word; what a next owner finds, not yet open. A store of one process may be the same one. */
  crash(): Promise<Store>;
  /** Of a store that several gateways open: one more on the same ledger, beside the first. Not yet open. */
  openAnother?(): Promise<Store>;
  /** Of such a store: this instance's lease is over from now on, though it may live. */
  expireLease?(instance: string): Promise<void>;
  /** Of a store that can be moved: one of its kind on a new ledger of its own, not yet open. `end` ends it, too. */
  createEmpty?(): Promise<Store>;
  dispose(): Promise<void>;
}

/** Noon, the first of June 2026, a Monday. */
export const NOON = Date.UTC(2026, 5, 1, 12);

/** A reserve with everything filled in. */
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

/** A settle that fits `reserve`, a second later, below its hold. */
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

/** A claim on a budget of Alice's, 10,000 nano-dollars in total unless told. */
export const limitClaim = (limit: Partial<Limit>, take: bigint): Limit & { take: bigint } => ({
  scope: "key:alice",
  unit: "nano_usd",
  max: 10_000n,
  per: "total",
  ...limit,
  take,
});

/** The owner with which a law begins. */
export const FIRST_OWNER = { instance: "first" };
/** The owner that comes after a crash. */
export const SECOND_OWNER = { instance: "second" };

/** A law: its name, and what to do with an open store, how to crash it, and what there is of other instances. */
export type Law = readonly [
  name: string,
  run: (
    store: Store,
    crash: () => Promise<Store>,
    others: Pick<StoreUnderTest, "openAnother" | "expireLease" | "createEmpty">,
  ) => Promise<void>,
];

/** The verdict on one command, applied alone. */
export const applyOne = async (store: Store, command: StoreCommand): Promise<CommandResult> =>
  (await store.apply([command]))[0]!;

/** All entries of an attempt. */
export const readEntries = async (store: Store, attempt: string): Promise<readonly LedgerEntry[]> =>
  (await store.listEntries({ attempt })).items;

let probes = 0;

/** A claim that takes nothing says what is left, and changes nothing but for its own two rows. */
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

/** Rejects unless the batch was rejected as `invalid`. */
export async function assertInvalid(batch: Promise<unknown>): Promise<void> {
  const error = await batch.then(
    () => assert.fail("The batch was not rejected."),
    (e: unknown) => e,
  );
  assert.equal(getFault(error)?.kind, "invalid", String(error));
}
