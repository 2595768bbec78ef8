// A Context for tests: everything the host lends, with an account of what was taken and said.
import { BUILT_IN_OPERATIONS } from "../model/operations/built-in-operations.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LifetimeScope, SharedResources } from "../lib/lifetime-scope.ts";
import type { GatewayStats } from "../plugin/gateway-stats.ts";
import type { Context, ListedModel } from "../plugin/context.ts";
import type { KeyRecord } from "../plugin/store/key.ts";
import { untracked } from "./resource-leaks.ts";

/** One line that a plugin logged. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** What a test lends to the plugin. Everything may be absent. */
export interface TestContextOptions {
  /** "test.plugin" unless told. */
  readonly id?: string;
  /** What answers `ctx.fetch`. Absent: nothing does, and a plugin that calls out during setup is caught. */
  readonly fetch?: Context["fetch"];
  /** What answers `ctx.ask`. Absent: nothing does. */
  readonly sendSubrequest?: Context["sendSubrequest"];
  /** Secret → key. */
  readonly keys?: Readonly<Record<string, KeyRecord>>;
  readonly models?: readonly ListedModel[];
  readonly ledger?: Context["ledger"];
  /** What `ctx.price` says. Absent: no price is known. */
  readonly price?: Context["quoteCost"];
  /** What `ctx.env` reads. */
  readonly env?: Readonly<Record<string, string>>;
  /** What `ctx.readFile` reads, by path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** What `ctx.readings()` says; unless told, a gateway of one process in which nothing goes on. */
  readonly stats?: GatewayStats;
  /** What `ctx.stateDir()` gives. Absent: a new folder, which goes with the context. */
  readonly stateDir?: string;
  /** What `shared` keeps across several contexts. */
  readonly shared?: SharedResources;
}

const DEFAULT_STATS: GatewayStats = {
  at: 1795000000000,
  version: "0.0.0",
  generation: { number: 1, at: 1795000000000 },
  perProcess: [],
  modelLists: [],
  processes: { expected: 1, responded: 1 },
  inFlight: 0,
  inFlightByFrontend: {},
  cooldowns: [],
  unreachable: [],
  pools: [],
  state: "ready",
  certificates: [],
  ledger: { ok: true, queue: 0, commits: { count: 0, sumMs: 0, buckets: [] } },
  loopDelayMs: { mean: 0, p99: 0, max: 0 },
  memory: { rss: 0, heapUsed: 0, external: 0 },
  rejections: {},
  droppedRecords: {},
};

/** A context with its account. A test hands `ctx` to `setup`, then reads the account, then ends it. */
export interface TestContext extends AsyncDisposable {
  readonly ctx: Context;
  readonly logs: readonly LogLine[];
  /** Addresses that `ctx.fetch` was asked for. */
  readonly fetchedUrls: readonly string[];
  /** How many things wait for their end: owned, deferred, repeating, shared. */
  readonly ownedCount: number;
  /** Ends everything in reverse order, as a retiring generation does. */
  end(): Promise<void>;
}

/**
 * Makes a context for one `setup`. A test calls it, and ends it by `await using` or `end()`. A tick that throws is a
 * line in `logs`; a disposer that throws makes `end()` reject.
 */
export function createTestContext(lent: TestContextOptions = {}): TestContext {
  const scope = new LifetimeScope();
  const shared = lent.shared ?? new SharedResources();
  const logs: LogLine[] = [];
  const fetched: string[] = [];
  let owned = 0;
  let folder: string | undefined;
  const taken = <T>(thing: T): T => {
    owned++;
    return thing;
  };
  const log = (level: LogLine["level"]) => (fields: LogLine["fields"], message: string) =>
    void logs.push({ level, fields, message });
  const ctx: Context = {
    id: lent.id ?? "test.plugin",
    log: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    signal: scope.signal,
    own: (thing) => taken(scope.own(thing)),
    onDispose: (undo) => taken(scope.defer(undo)),
    runEvery: (ms, tick) =>
      taken(scope.every(ms, tick, (error) => log("error")({ error }, "A tick failed."))),
    shared: (key, create, end) => taken(shared.acquire(scope, key, create, end)),
    createPeerQuery: () => async () => undefined,
    async sendSubrequest(request, of) {
      if (!lent.sendSubrequest) throw new Error(`Nothing answers ${request.path} in this test.`);
      return lent.sendSubrequest(request, of);
    },
    async fetch(url, init) {
      fetched.push(String(url));
      if (!lent.fetch) throw new Error(`Nothing answers ${String(url)} in this test.`);
      return untracked(() => lent.fetch!(url, init));
    },
    keys: { find: async (secret) => lent.keys?.[secret] },
    catalog: {
      list: ({ operation }) =>
        (lent.models ?? []).filter((model) => !operation || model.operation === operation),
      find: (id) => lent.models?.find((model) => model.id === id),
      operations: () => BUILT_IN_OPERATIONS,
    },
    quoteCost: lent.price ?? (() => null),
    stats: async () => lent.stats ?? DEFAULT_STATS,
    ledger: lent.ledger ?? {
      listEntries: async () => ({ items: [] }),
      sumEntries: async () => [],
    },
    env: (name) => lent.env?.[name],
    async readFile(path) {
      const file = lent.files?.[path];
      if (file === undefined) throw new Error(`There is no file ${path} in this test.`);
      return Buffer.from(file);
    },
    stateDir: () => lent.stateDir ?? (folder ??= mkdtempSync(join(tmpdir(), "tollgate-test-"))),
  };
  const end = async () => {
    try {
      await scope[Symbol.asyncDispose]();
      owned = 0;
    } finally {
      if (folder) rmSync(folder, { recursive: true, force: true });
    }
  };
  return {
    ctx: Object.freeze(ctx),
    logs,
    fetchedUrls: fetched,
    get ownedCount() {
      return owned;
    },
    end,
    [Symbol.asyncDispose]: end,
  };
}
