// Plugin context for tests: it provides everything that the host provides, and records everything
// that the plugin acquired and logged.
import { BUILT_IN_OPERATIONS } from "../model/operations/built-in-operations.ts";
import { hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BOUNDS } from "../lib/bounds.ts";
import { readBoundedBody } from "../lib/net/bounded-body.ts";
import { wallClock } from "../lib/time/wall-clock.ts";
import { LifetimeScope, SharedResources } from "../lib/lifetime-scope.ts";
import type { GatewayStats } from "../plugin/gateway-stats.ts";
import type { Context, ListedModel, StreamedResponse } from "../plugin/context.ts";
import type { GatewayEvent } from "../plugin/gateway-event.ts";
import { createFault } from "../model/error.ts";
import { createPluginEvent } from "../model/plugin-event.ts";
import type { OpenCallOptions, OpenCallResult } from "../plugin/store/open-call.ts";
import type { KeyRecord } from "../plugin/store/account.ts";
import { untracked } from "./resource-leaks.ts";

/** One line that a plugin logged. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A call that a plugin opened. `result` is undefined until the plugin settles the call. */
export interface OpenedTestCall extends OpenCallOptions {
  readonly result: OpenCallResult | undefined;
}

/** Context that a test provides to the plugin. All members are optional. */
export interface TestContextOptions {
  /** Plugin ID. Default: "test.plugin". */
  readonly id?: string;
  /**
   * Answers `ctx.fetch`. Default: every fetch fails, so that a request during setup is detected.
   */
  readonly fetch?: Context["fetch"];
  /** Answers `ctx.connect`. Default: every connection fails. */
  readonly connect?: Context["connect"];
  /** Answers `ctx.sendSubrequest`. Default: every subrequest fails. */
  readonly sendSubrequest?: Context["sendSubrequest"];
  /** Answers `ctx.openCall`. Default: every call is reserved, and recorded in `openedCalls`. */
  readonly openCall?: Context["openCall"];
  /** Key records by secret. */
  readonly keys?: Readonly<Record<string, KeyRecord>>;
  readonly models?: readonly ListedModel[];
  readonly ledger?: Context["ledger"];
  /** Records of jobs. Default: the store keeps none. */
  readonly jobs?: Context["jobs"];
  /** Answers `ctx.quoteCost`. Default: no price is known. */
  readonly price?: Context["quoteCost"];
  /** Environment variables that `ctx.env` returns. */
  readonly env?: Readonly<Record<string, string>>;
  /** Files that `ctx.readFile` returns, by path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Bound `ctx.bounds.jsonValues`. Default: the default of the config. */
  readonly maxJsonValues?: number;
  /** Stats that `ctx.stats()` returns. Default: an idle gateway with one process. */
  readonly stats?: GatewayStats;
  /**
   * Folder that `ctx.stateDir()` returns. Default: a new folder, which is deleted with the context.
   */
  readonly stateDir?: string;
  /** Shared resources that several contexts use together. */
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
  webSocketsByFrontend: {},
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

/**
 * A context with its records. A test passes `ctx` to `setup`, reads the records, and then ends the
 * context.
 */
export interface TestContext extends AsyncDisposable {
  readonly ctx: Context;
  readonly logs: readonly LogLine[];
  /** Addresses that the plugin requested with `ctx.fetch`. */
  readonly fetchedUrls: readonly string[];
  /** Calls that the plugin opened with `ctx.openCall`, with the result that settled them. */
  readonly openedCalls: readonly OpenedTestCall[];
  /** Events that the plugin reported with `ctx.reportEvent`. */
  readonly reportedEvents: readonly GatewayEvent[];
  /**
   * Number of registered resources that are still open: owned objects, dispose functions, timers,
   * and shared objects.
   */
  readonly ownedCount: number;
  /** Ends all resources in reverse order, as when a config generation is replaced. */
  end(): Promise<void>;
}

/**
 * Creates a context for one `setup`. End it with `await using` or `end()`. If a tick throws, a line
 * is added to `logs`. If a dispose function throws, `end()` rejects.
 */
export function createTestContext(lent: TestContextOptions = {}): TestContext {
  const scope = new LifetimeScope();
  const shared = lent.shared ?? new SharedResources();
  const logs: LogLine[] = [];
  const fetched: string[] = [];
  const opened: (OpenCallOptions & { result: OpenCallResult | undefined })[] = [];
  const events: GatewayEvent[] = [];
  const written = new Map<string, KeyRecord>();
  let owned = 0;
  let folder: string | undefined;
  const taken = <T>(thing: T): T => {
    owned++;
    return thing;
  };
  const log = (level: LogLine["level"]) => (fields: LogLine["fields"], message: string) =>
    void logs.push({ level, fields, message });
  const peerQueries = new Set<string>();
  const ctx: Context = {
    id: lent.id ?? "test.plugin",
    log: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    signal: scope.signal,
    own: (thing) => taken(scope.own(thing)),
    onDispose: (undo) => taken(scope.defer(undo)),
    runEvery: (ms, tick) =>
      taken(scope.every(ms, tick, (error) => log("error")({ error }, "interval callback failed"))),
    shared: (key, create, end) => taken(shared.acquire(scope, key, create, end)),
    createPeerQuery(name) {
      if (peerQueries.has(name)) throw new Error(`createPeerQuery: "${name}" exists already`);
      peerQueries.add(name);
      return async () => undefined;
    },
    async sendSubrequest(request, of) {
      if (!lent.sendSubrequest)
        throw new Error(`No response is configured for ${request.path} in this test.`);
      return lent.sendSubrequest(request, of);
    },
    async fetch(url, init) {
      fetched.push(String(url));
      if (!lent.fetch)
        throw new Error(`No response is configured for ${String(url)} in this test.`);
      return untracked(() => lent.fetch!(url, init));
    },
    async fetchStream(url, { idleMs: _, ...init }) {
      return toStreamedResponse(await ctx.fetch(url, init));
    },
    async openCall(options) {
      if (lent.openCall) return lent.openCall(options);
      opened.push({ ...options, result: undefined });
      const at = opened.length - 1;
      return {
        id: `${options.parentRequest.id}.${at + 1}`,
        async settle(result) {
          opened[at]!.result ??= result;
        },
      };
    },
    async connect(path, options) {
      if (!lent.connect) throw new Error(`No connection is configured for ${path} in this test.`);
      return lent.connect(path, options);
    },
    keys: {
      find: async (secret) => lent.keys?.[secret],
      findByDigest: async (digest) =>
        Object.values(lent.keys ?? {}).find((key) => key.digest === digest) ?? written.get(digest),
      read: async (digest) => written.get(digest),
      async write(record) {
        const before = written.get(record.digest);
        if (before && record.version !== (before.version ?? 1) + 1)
          throw createFault("invalid", "The key was changed.", { code: "version_conflict" });
        written.set(record.digest, record);
      },
    },
    catalog: {
      list: ({ operation }) =>
        (lent.models ?? []).filter((model) => !operation || model.operation === operation),
      find: (id) => lent.models?.find((model) => model.id === id),
      operations: () => BUILT_IN_OPERATIONS,
    },
    quoteCost: lent.price ?? (() => null),
    jobs: lent.jobs,
    jobLines: undefined,
    bounds: { jsonValues: lent.maxJsonValues ?? BOUNDS.jsonValues.max },
    jobCalls: undefined,
    deriveSecret: (purpose) => hash("sha256", purpose, "buffer"),
    reportEvent: (name, data) =>
      void events.push({ at: wallClock(), ...createPluginEvent(ctx.id, name, data) }),
    stats: async () => lent.stats ?? DEFAULT_STATS,
    ledger: lent.ledger ?? {
      listEntries: async () => ({ items: [] }),
      sumEntries: async () => [],
    },
    env: (name) => lent.env?.[name],
    async readFile(path) {
      const file = lent.files?.[path];
      if (file === undefined) throw new Error(`File ${path} is not configured in this test.`);
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
    openedCalls: opened,
    reportedEvents: events,
    get ownedCount() {
      return owned;
    },
    end,
    [Symbol.asyncDispose]: end,
  };
}

/** Converts the response of a test to one of `ctx.fetchStream`. */
export function toStreamedResponse(response: Response): StreamedResponse {
  const { status, headers, body } = response;
  let isCanceled = false;
  return {
    status,
    headers: Object.fromEntries(headers),
    bytes: (maxBytes) => readBoundedBody(body, maxBytes),
    async read(onPiece) {
      for await (const piece of body ?? []) {
        onPiece(Buffer.from(piece));
        if (isCanceled) return;
      }
    },
    cancel() {
      isCanceled = true;
      if (body && !body.locked) body.cancel().catch(() => undefined);
    },
  };
}
