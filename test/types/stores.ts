// What a store may be, and what must not compile.
import {
  defineStore,
  type AccountRecord,
  type AuditEntry,
  type AuditLog,
  type ErasureRequest,
  type InstanceState,
  type KeyLimit,
  type KeyRecord,
  type ThresholdOutbox,
  type LedgerMaintenance,
  type PluginCommand,
  type Store,
  type StoreCommand,
  type StoreEvent,
  type StoreInstance,
  type LedgerTotal,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

declare const rest: Omit<Store, "open" | "lease" | "getOrCreateShared" | "listInstances">;
const plain = { api: 1, name: "x", summary: "x" } as const;

// ── a store of one process asks for nothing of this ──
export const alone = defineStore({
  ...plain,
  setup: () => ({
    ...rest,
    open: async ({ instance }) => ({ epoch: instance.length, recovered: 0 }),
  }),
});

// ── a store of several gateways ──
export const several = defineStore({
  ...plain,
  setup: () => ({
    ...rest,
    lease: { durationMs: 15_000, heartbeatMs: 5_000 },
    async open(owner: StoreInstance, hear) {
      is<Same<typeof owner.instance, string>>();
      hear?.({ type: "keys_changed" });
      hear?.({ type: "calls_recovered", instance: "a", calls: 3 });
      hear?.({ type: "rows_lost", instance: "a", from: 1, to: 9 });
      hear?.({ type: "unavailable", reason: "connection refused" });
      // @ts-expect-error  an operator has to know why
      hear?.({ type: "unavailable" });
      // @ts-expect-error  no such news
      hear?.({ type: "rained" });
      // @ts-expect-error  whose, and how many
      hear?.({ type: "calls_recovered" });
      return { epoch: 1, recovered: 0 };
    },
    getOrCreateShared: async (_name, make) => make(),
    listInstances: async () => [{ instance: "a", state: "live", lastHeartbeatAt: 1 }],
  }),
});

// ── what must be said ──
export const noBeat = defineStore({
  ...plain,
  setup: () => ({
    ...rest,
    // @ts-expect-error  how often the host says that it lives belongs to a lease
    lease: { durationMs: 1 },
    open: async () => ({ epoch: 1, recovered: 0 }),
  }),
});
export const texts = defineStore({
  ...plain,
  setup: () => ({
    ...rest,
    open: async () => ({ epoch: 1, recovered: 0 }),
    // @ts-expect-error  what is shared is bytes
    getOrCreateShared: async () => "text",
  }),
});
export const off: InstanceState = {
  instance: "a",
  state: "live",
  lastHeartbeatAt: 1,
  clockAheadMs: -5,
  syncLagMs: 0,
  openCalls: 2,
};
export const beat: StoreCommand = {
  do: "heartbeat",
  at: 1,
  info: { version: "1", host: "h", pid: 1, url: "http://127.0.0.1:1", generation: 2, config: "c" },
};
// @ts-expect-error  what an instance says of itself it says whole
export const nameless: StoreCommand = { do: "heartbeat", at: 1, info: { version: "1" } };
// @ts-expect-error  an instance lives, has left or is dead
export const ill: InstanceState = { instance: "a", state: "ill", lastHeartbeatAt: 1 };

export function heard(news: StoreEvent): number {
  // @ts-expect-error  what news have depends on their type
  if (news.type === "keys_changed") return news.calls;
  if (news.type === "calls_recovered") return news.calls;
  return news.type === "rows_lost" ? news.to - news.from : 0;
}
is<Same<NonNullable<KeyRecord["account"]>, string>>();

// ── accounts that commands make, and what limits have counted: a store may have neither ──
export const rooms = defineStore({
  ...plain,
  setup: () => ({
    ...rest,
    open: async () => ({ epoch: 1, recovered: 0 }),
    listAccounts: async () => ({ items: [{ id: "acme", created: 1, version: 1 }] }),
    readLimits: async (limits, at) => {
      is<Same<typeof at, number>>();
      return limits.map((limit) => ({
        ...limit,
        remaining: 0,
        resetsAt: at,
        used: 1n,
        reserved: 0n,
      }));
    },
  }),
});
// @ts-expect-error  each change of an account has its version
export const unversioned: AccountRecord = { id: "acme", created: 1 };
// @ts-expect-error  numbers, or nothing
export const halves: AccountRecord = { id: "acme", created: 1, version: 1, discloseLimits: "some" };
export const change: StoreCommand = {
  do: "account",
  at: 1,
  // @ts-expect-error  an account is said whole
  account: { id: "acme", parent: "house" },
};
// @ts-expect-error  a limit of a key does not say whose it is
export const limited: KeyLimit = { scope: "key:x", unit: "requests", max: 1, per: "minute" };

// ── what is asked, and what may be left out of the answer ──
declare const store: Store;
export const total: LedgerTotal = { by: {}, calls: 1, usage: {}, costNano: 1n, unpriced: 0 };
is<Same<typeof total.estimated, number | undefined>>();
void store.sumEntries({ by: ["hour", "credential"], zone: "Europe/Berlin", label: "team=web" });
void store.listEntries({
  model: "openai/gpt-5",
  provider: "openai",
  outcome: "ok",
  frontend: "messages",
});
// @ts-expect-error  no such group
void store.sumEntries({ by: ["weather"] });
// @ts-expect-error  one label, with its value
void store.sumEntries({ by: [], label: { team: "web" } });
// @ts-expect-error  the time zone is of sums; entries have moments
void store.listEntries({ zone: "Europe/Berlin" });

// ── a ledger that grows old: each for itself, and none is asked for ──
export const keeps = defineStore({
  ...plain,
  setup: () => ({
    ...rest,
    open: async () => ({ epoch: 1, recovered: 0 }),
    maintenance: {
      async erase(what) {
        if ("key" in what) is<Same<typeof what.key, string>>();
        if ("label" in what) is<Same<typeof what.label.value, string>>();
        return { hashes: [] };
      },
      async backup(file) {
        is<Same<typeof file, string>>();
        return { total: { calls: 0, usage: {}, costNano: 0n, unpriced: 0 }, erasedHashes: [] };
      },
    },
  }),
});
export const forgets = defineStore({
  ...plain,
  setup: () => ({
    ...rest,
    open: async () => ({ epoch: 1, recovered: 0 }),
    maintenance: {
      // @ts-expect-error  what was erased is said, so that it can be taken out of older copies
      erase: async () => {},
    },
  }),
});
export const floats: LedgerMaintenance = {
  // @ts-expect-error  money is whole nano-dollars
  backup: async () => ({
    total: { calls: 0, usage: {}, costNano: 0.5, unpriced: 0 },
    erasedHashes: [],
  }),
};
export const blind: LedgerMaintenance = {
  // @ts-expect-error  what is pruned is said
  prune: async () => {},
  planPrune: async (before) => ({ rows: before, bytes: 0, ms: 0 }),
};
// @ts-expect-error  a label or a key, not both
export const both: ErasureRequest = { key: "k", label: { name: "a", value: "b" }, hashes: 1 };

// ── crossings that are kept until they are told ──
export const crosses: ThresholdOutbox = {
  listUndelivered: async () => [],
  async markDelivered(crossings) {
    is<Same<(typeof crossings)[number]["percent"], 50 | 80 | 95 | 100>>();
    // @ts-expect-error  a key's name may be a person
    void crossings[0]?.name;
  },
};
// @ts-expect-error  what was told has to be kept too
export const forgetful: ThresholdOutbox = { listUndelivered: async () => [] };

// ── what operators did ──
export const audits: AuditLog = {
  async begin(entry) {
    is<Same<typeof entry, AuditEntry>>();
    // @ts-expect-error  how it ends is not known before it is done
    void entry.outcome;
  },
  async end({ outcome }) {
    is<Same<typeof outcome, "done" | "failed">>();
  },
  list: async () => ({ items: [] }),
};
// @ts-expect-error  what was begun has to be told of
export const endless: AuditLog = { begin: async () => {}, end: async () => {} };
export const token: Pick<KeyRecord, "admin"> = {
  // @ts-expect-error  there is no such role
  admin: "root",
};

// ── commands that are run before it is opened ──
export const migrate: PluginCommand = {
  summary: "Makes the tables",
  runsBeforeOpen: true,
  run: async () => ({ made: 1 }),
};
export const vague: PluginCommand = {
  summary: "Makes the tables",
  // @ts-expect-error  it is, or it is not
  runsBeforeOpen: "before",
  run: async () => null,
};
