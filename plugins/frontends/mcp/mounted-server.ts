// A server of the options, with its credential, rules, and cached lists.
import type { Context, JsonObject, Price, RequestHead } from "tollgate/plugin";
import { fail, getFault, matchesGlob } from "tollgate/plugin";
import { hash } from "node:crypto";
import { CallConditions, type ConditionOptions } from "./conditions/call-conditions.ts";
import { canonicalJson, RPC_ERRORS } from "./json-rpc.ts";
import { hashTool, keyOf, readHeaderArguments, type HeaderArgument } from "./list-entries.ts";
import { publicName } from "./public-names.ts";
import type { CredentialResolver } from "./server-credential.ts";
import {
  ServerError,
  type ListKind,
  type ServerCaller,
  type ServerDescription,
  type ServerItem,
  type ServerList,
  type ToolServer,
} from "./tool-server.ts";

/** Rules of a server. */
export interface ServerRules {
  readonly tools?: {
    readonly allow?: readonly string[];
    readonly deny?: readonly string[];
    readonly pin?: Readonly<Record<string, string>>;
    readonly on_change?: "warn" | "block";
  };
  readonly prices?: Readonly<Record<string, string>>;
  readonly conditions?: readonly ConditionOptions[];
  readonly zero_retention: boolean;
}

/** An entry of a list. */
export interface ListEntry {
  readonly item: ServerItem;
  /** Name or URI at the server. */
  readonly key: string;
  /** Arguments of a tool that are mirrored in headers. */
  readonly mirrored: readonly HeaderArgument[];
  /** Hash of a tool's definition. Empty for other entries. */
  readonly hash: string;
}

/** A list that was read at a time. */
export interface CachedList {
  readonly entries: ReadonlyMap<string, ListEntry>;
  /** Tools by their names in scopes of several servers. */
  readonly byPublicName: ReadonlyMap<string, ListEntry>;
  /** Names of all entries that the server has, including those that are not offered. */
  readonly allNames: readonly string[];
  readonly readAt: number;
  readonly ttlMs: number;
}

/** A list or description that is being read, or was read, since a time. */
interface Loading<T> {
  readonly at: number;
  readonly value: Promise<T>;
  /** Undefined while it is being read. */
  readAt?: number;
}

/** The client of a request, as servers see it. */
export interface ClientProfile {
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject | undefined;
  readonly logLevel: string | undefined;
  /** Separates sessions of one key. */
  readonly sessionId: string;
}

/** Largest number of owners of credentials whose lists are cached. */
const MAX_OWNERS = 1_000;
/** How long an old list is used if the server does not respond, in list times. */
const MAX_STALE_TTLS = 10;
const MAX_TTL_MS = 3_600_000;
/** Capabilities of clients that a server can require for a tool. */
const ASKING_CAPABILITIES = ["sampling", "elicitation", "roots"] as const;

export class MountedServer {
  readonly name: string;
  readonly server: ToolServer;
  readonly conditions: CallConditions;
  readonly rules: ServerRules;
  readonly #ctx: Context;
  readonly #credentials: CredentialResolver;
  readonly #ttlMs: number;
  readonly #timeoutMs: number;
  readonly #lists = new Map<string, CachedList>();
  readonly #loading = new Map<string, Loading<CachedList>>();
  readonly #descriptions = new Map<string, Loading<ServerDescription>>();
  /** Hashes of tools when they were first seen, by name. */
  readonly #seenHashes: Map<string, string>;
  readonly #flagged = new Set<string>();

  constructor(of: {
    readonly server: ToolServer;
    readonly rules: ServerRules;
    readonly credentials: CredentialResolver;
    readonly listTtlMs: number;
    /** How long clients wait for a list or a description. */
    readonly listTimeoutMs: number;
    readonly ctx: Context;
  }) {
    this.name = of.server.name;
    this.server = of.server;
    this.rules = of.rules;
    this.conditions = new CallConditions(of.rules.conditions ?? []);
    this.#ctx = of.ctx;
    this.#credentials = of.credentials;
    this.#ttlMs = of.listTtlMs;
    this.#timeoutMs = of.listTimeoutMs;
    this.#seenHashes = of.ctx.shared(`tools ${this.name}`, () => new Map<string, string>());
  }

  /** Whether every tool of the server is offered to clients that may call it. */
  get offersAllTools(): boolean {
    return this.rules.tools === undefined;
  }

  /** Returns the price of a call. Undefined: it is free. */
  priceOf(tool: string): Price | undefined {
    const { prices = {} } = this.rules;
    const usd = Object.hasOwn(prices, tool) ? prices[tool] : prices["*"];
    return usd === undefined ? undefined : { lines: [{ unit: "tool_runs", usd, per: 1 }] };
  }

  /** Throws if the request requires zero data retention and the server is not known to have it. */
  assertRetention(x: RequestHead): void {
    if (x.privacy === "off" || this.rules.zero_retention) return;
    fail(
      "privacy",
      `mcp:${this.name} is not known to have zero data retention, which this request requires.`,
      { code: "zdr_unavailable" },
    );
  }

  /** Calls the server with the credential of the client. A rejected credential is renewed once. */
  withCaller<T>(
    x: RequestHead,
    client: ClientProfile,
    signal: AbortSignal,
    run: (caller: ServerCaller) => Promise<T>,
  ): Promise<T> {
    const { capabilities, clientInfo, logLevel, sessionId } = client;
    const callerOf = (own: ServerCaller["credential"]): ServerCaller => ({
      credential: own,
      partition: [x.identity!.id, sessionId, own.owner, hashCapabilities(capabilities)].join("\n"),
      capabilities,
      clientInfo,
      logLevel,
      signal,
    });
    const credential = this.#credentials.resolve(x);
    return credential instanceof Promise
      ? credential.then((resolved) => this.#withRenewal(x, resolved, callerOf, run))
      : this.#withRenewal(x, credential, callerOf, run);
  }

  /**
   * Returns a list, without a promise if it is known. `allowStale`: an expired list is returned
   * immediately, and read again.
   */
  list(
    kind: ListKind,
    x: RequestHead,
    of: { readonly capabilities: JsonObject; readonly allowStale?: boolean },
  ): CachedList | Promise<CachedList> {
    const credential = this.#credentials.resolve(x);
    return credential instanceof Promise
      ? credential.then((resolved) => this.#listOf(kind, x, { ...of, credential: resolved }))
      : this.#listOf(kind, x, { ...of, credential });
  }

  #listOf(
    kind: ListKind,
    x: RequestHead,
    {
      capabilities,
      allowStale = false,
      credential,
    }: {
      readonly capabilities: JsonObject;
      readonly allowStale?: boolean;
      readonly credential: ServerCaller["credential"];
    },
  ): CachedList | Promise<CachedList> {
    const own = ASKING_CAPABILITIES.filter((name) => capabilities[name] !== undefined);
    const key = [kind, credential.owner, ...own].join("\n");
    const known = this.#lists.get(key);
    const age = known ? performance.now() - known.readAt : Infinity;
    if (known && age < known.ttlMs) return known;
    const isUsable = known !== undefined && age < known.ttlMs * MAX_STALE_TTLS;
    const loading = this.#load(key, kind, x, { credential, own });
    if (isUsable && allowStale) {
      loading.value.catch(() => undefined);
      return known;
    }
    return this.#inTime(loading).catch((problem: unknown) => {
      const isRejected = problem instanceof ServerError && problem.progress === "rejected";
      if (isUsable && !isRejected) return known;
      throw problem;
    });
  }

  /** Returns the server's description of itself. */
  async describe(x: RequestHead): Promise<ServerDescription> {
    const credential = await this.#credentials.resolve(x);
    const known = this.#descriptions.get(credential.owner);
    // A description that is being read is used at any age, so a server that hangs receives one request.
    const age = performance.now() - (known?.readAt ?? Infinity);
    if (known && age < this.#ttlMs) return this.#inTime(known);
    const value = this.#withRenewal(x, credential, listCaller, (caller) =>
      this.server.describe(caller),
    );
    const loading: Loading<ServerDescription> = { at: performance.now(), value };
    this.#descriptions.set(credential.owner, loading);
    trim(this.#descriptions);
    value.then(
      () => (loading.readAt = performance.now()),
      () => {
        if (this.#descriptions.get(credential.owner) === loading)
          this.#descriptions.delete(credential.owner);
      },
    );
    return this.#inTime(loading);
  }

  /**
   * Resolves with a list or description, or rejects if the server needs too long. It is still read,
   * so that the server is not asked by each client, and later clients do not wait again.
   */
  #inTime<T>({ at, value }: Loading<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const ms = Math.max(0, at + this.#timeoutMs - performance.now());
      const timer = setTimeout(() => reject(lateError(this.#timeoutMs)), ms);
      value.then(
        (found) => {
          clearTimeout(timer);
          resolve(found);
        },
        (problem: unknown) => {
          clearTimeout(timer);
          // Only the time limit of the list cancels it.
          const isLate = getFault(problem)?.kind === "canceled";
          reject(isLate ? lateError(this.#timeoutMs) : (problem as Error));
        },
      );
    });
  }

  /** Discards the cached lists, because the server reported a change. */
  invalidate(kind: ListKind): void {
    for (const [key, list] of this.#lists)
      if (key.startsWith(`${kind}\n`)) this.#lists.set(key, { ...list, ttlMs: 0 });
  }

  #load(
    key: string,
    kind: ListKind,
    x: RequestHead,
    {
      credential,
      own,
    }: { readonly credential: ServerCaller["credential"]; readonly own: readonly string[] },
  ): Loading<CachedList> {
    const running = this.#loading.get(key);
    if (running) return running;
    const callerOf = (given: typeof credential) => listCaller(given, own);
    const value = this.#withRenewal(x, credential, callerOf, (caller) =>
      this.server.list(kind, caller),
    )
      .catch(async (problem: unknown): Promise<ServerList> => {
        if (kind === "tools" && isMethodNotFound(problem) && (await this.#statesNoTools(x)))
          return { items: [] };
        throw problem;
      })
      .then((read) => {
        const list = this.#toCachedList(kind, read);
        this.#lists.set(key, list);
        trim(this.#lists);
        return list;
      })
      .finally(() => this.#loading.delete(key));
    // It can fail after all clients have stopped waiting.
    value.catch(() => undefined);
    const loading = { at: performance.now(), value };
    this.#loading.set(key, loading);
    return loading;
  }

  /** Whether the server describes itself as one without tools. */
  async #statesNoTools(x: RequestHead): Promise<boolean> {
    const described = await this.describe(x).catch(() => undefined);
    return described !== undefined && described.capabilities["tools"] === undefined;
  }

  async #withRenewal<T>(
    x: RequestHead,
    credential: ServerCaller["credential"],
    callerOf: (credential: ServerCaller["credential"]) => ServerCaller,
    run: (caller: ServerCaller) => Promise<T>,
  ): Promise<T> {
    try {
      return await run(callerOf(credential));
    } catch (problem) {
      const isRejected =
        problem instanceof ServerError &&
        problem.progress === "rejected" &&
        (problem.status === 401 || problem.challenge != null);
      if (!isRejected) throw problem;
      const renewed = await this.#credentials.renew?.(credential, x, problem.challenge);
      if (!renewed) throw problem;
      return run(callerOf(renewed));
    }
  }

  #toCachedList(kind: ListKind, { items, bindings, ttlMs }: ServerList): CachedList {
    const entries = new Map<string, ListEntry>();
    const byPublicName = new Map<string, ListEntry>();
    const allNames: string[] = [];
    for (const item of items) {
      const key = keyOf(kind, item);
      allNames.push(key);
      if (kind === "tools" && !this.#isSelected(key)) continue;
      const digest = kind === "tools" ? hashTool(item, bindings?.get(key)) : "";
      if (kind === "tools" && !this.#isApproved(key, digest)) continue;
      const schema = item["inputSchema"] as JsonObject | undefined;
      const mirrored = (kind === "tools" && schema && readHeaderArguments(schema)) || [];
      const entry: ListEntry = { item, key, mirrored, hash: digest };
      entries.set(key, entry);
      byPublicName.set(publicName(this.name, kind, key), entry);
    }
    const ttl = Math.min(ttlMs || this.#ttlMs, MAX_TTL_MS);
    return { entries, byPublicName, allNames, readAt: performance.now(), ttlMs: ttl };
  }

  #isSelected(name: string): boolean {
    const { allow, deny } = this.rules.tools ?? {};
    const matches = (patterns: readonly string[]) => patterns.some((one) => matchesGlob(one, name));
    return (!allow || matches(allow)) && !(deny && matches(deny));
  }

  /** Whether the definition of a tool is the pinned one, or may have changed. */
  #isApproved(name: string, digest: string): boolean {
    const { pin, on_change: reaction = "warn" } = this.rules.tools ?? {};
    const pinned = pin && Object.hasOwn(pin, name) ? pin[name] : undefined;
    if (pinned !== undefined) {
      if (pinned === digest) return true;
      this.#flag(name, digest, "blocked");
      return false;
    }
    const before = this.#seenHashes.get(name);
    if (before === undefined) this.#seenHashes.set(name, digest);
    if (before === undefined || before === digest) return true;
    this.#flag(name, digest, reaction === "block" ? "blocked" : "offered");
    return reaction !== "block";
  }

  /** Reports a tool whose definition differs from the approved one, once for each definition. */
  #flag(tool: string, digest: string, action: "blocked" | "offered"): void {
    const key = `${tool}\n${digest}`;
    if (this.#flagged.has(key)) return;
    this.#flagged.add(key);
    const fields = { server: this.name, tool, hash: digest, action };
    this.#ctx.log.warn(fields, "definition of tool changed");
    this.#ctx.reportEvent("tool_changed", fields);
  }
}

/** Error for a server that does not return a list or its description in time. */
const lateError = (ms: number): ServerError =>
  new ServerError(`The server did not respond within ${ms / 1_000} s.`, {
    code: RPC_ERRORS.internal,
    progress: "unknown",
    status: 504,
  });

const isMethodNotFound = (problem: unknown): boolean =>
  problem instanceof ServerError && problem.code === RPC_ERRORS.methodNotFound;

/** Most clients declare no capabilities. */
const hashCapabilities = (capabilities: JsonObject): string =>
  Object.keys(capabilities).length === 0
    ? ""
    : hash("sha256", canonicalJson(capabilities)).slice(0, 16);

/** Lists are read in a separate session, which no client uses. */
const listCaller = (
  credential: ServerCaller["credential"],
  capabilities: readonly string[] = [],
): ServerCaller => ({
  credential,
  partition: ["lists", credential.owner, ...capabilities].join("\n"),
  capabilities: Object.fromEntries(capabilities.map((name) => [name, {}])),
  // The result is for all clients, so it does not end with one of them.
  signal: AbortSignal.timeout(60_000),
});

/** Removes the oldest entries of a cache. */
function trim(cache: Map<string, unknown>): void {
  for (const key of cache.keys()) {
    if (cache.size <= MAX_OWNERS) return;
    cache.delete(key);
  }
}

/** Error for a name that the client may not use or that does not exist. Both are the same. */
export const unknownName = (what: string, name: string): ServerError =>
  new ServerError(`Unknown ${what}: ${name.slice(0, 128)}`, {
    code: RPC_ERRORS.invalidParams,
    progress: "unsent",
  });
