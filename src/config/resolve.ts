// What was read, checked and loaded, as the frozen value that the gateway is built from. Nothing can be wrong any more
// but what needs two values to see.
import { createHash } from "node:crypto";
import { dirname, resolve as path } from "node:path";
import { LONGEST_MS, parseDuration, parseSize } from "../lib/duration.ts";
import type { ErrorKind } from "../model/error.ts";
import { accountsOf, defaultsOf } from "./accounts.ts";
import { adminOf } from "./admin.ts";
import { factsOf } from "./facts.ts";
import { hedgeDurations, hedgeOf } from "./hedge.ts";
import { listenOf } from "./listen.ts";
import type { Mount } from "./mounts.ts";
import { problem } from "./problems.ts";
import { candidatesOf } from "./references.ts";
import { RETRYABLE } from "./entries.ts";
import type { Report } from "./substitute.ts";
import { timeoutsOf } from "./timeouts.ts";
import { below, isMapping, type Mapping } from "./tree.ts";
import type {
  ModelRoute,
  CredentialConfig,
  GatewayConfig,
  MountConfig,
  MiddlewareConfig,
  ProviderConfig,
  Timeouts,
} from "./types.ts";

/** What a command line may say in place of the file. */
export interface Overrides {
  readonly host?: string;
  readonly port?: number;
  /** Of the admin listener, where it has one. */
  readonly adminPort?: number;
  /** Absolute. */
  readonly stateDir?: string;
  readonly workers?: number | "auto";
  readonly logLevel?: GatewayConfig["log"]["level"];
}

export interface Resolving {
  readonly file: string;
  readonly sources: readonly string[];
  /** The file that `state_dir` stands in. */
  readonly stateFrom: string;
  /** The file that `listen` stands in. */
  readonly listenFrom: string;
  /** The file that `admin` stands in. */
  readonly adminFrom: string;
  readonly unmounted: ReadonlyMap<string, string>;
  readonly overrides: Overrides;
}

/** `root` has passed the skeleton, defaults filled in. */
export function resolve(root: any, mounts: readonly Mount[], of: Resolving): GatewayConfig {
  const timeouts = timeoutsOf(root.timeouts, undefined);
  const { overrides } = of;
  const config = {
    file: of.file,
    listen: listenOf(root.listen, of.listenFrom, overrides),
    proxy: root.proxy && { url: root.proxy.url, except: root.proxy.except },
    admin: adminOf(root.admin, of.adminFrom, overrides.adminPort),
    publicUrl: root.public_url,
    stateDir: overrides.stateDir ?? path(dirname(of.stateFrom), root.state_dir),
    workers: overrides.workers ?? root.workers,
    ...drainOf(root.drain),
    allowEmpty: root.allow_empty,
    strict: root.strict,
    answerHeaders: root.answer_headers,
    timeouts,
    writeMs: parseDuration(root.timeouts.write)!,
    attempts: root.attempts,
    maxBodyBytes: parseSize(String(root.max_body))!,
    bounds: {
      inFlightBytes: parseSize(String(root.bounds.in_flight))!,
      values: root.bounds.values,
      answerBytes: parseSize(String(root.bounds.answer))!,
      connections: root.bounds.connections,
      connectionsPerAddress: root.bounds.connections_per_address,
    },
    overload: { most: root.overload.concurrent, waitMs: parseDuration(root.overload.wait)! },
    refreshMs: parseDuration(root.catalogue.refresh)!,
    files: {
      ttlMs: parseDuration(root.files.lifetime)!,
      maxFileBytes: parseSize(String(root.files.max_file))!,
      maxBytes: parseSize(String(root.files.max_total))!,
      maxKeyBytes: parseSize(String(root.files.max_key))!,
    },
    remember: root.remember,
    log: {
      level: overrides.logLevel ?? root.log.level,
      slowMs: parseDuration(root.log.slow)!,
    },
    ledger: {
      keepMs: root.ledger.keep === undefined ? undefined : parseDuration(root.ledger.keep)!,
    },
    store: mountedOf(mounts.find((m) => m.kind === "store")!),
    frontends: mounts.filter((m) => m.kind === "frontend").map(mountedOf),
    middleware: mounts.filter((m) => m.kind === "middleware").map((m) => middlewareOf(m, root)),
    observers: mounts.filter((m) => m.kind === "observer").map(mountedOf),
    providers: new Map(
      mounts
        .filter((m) => m.kind === "provider")
        .map((m) => providerOf(m, root.providers, timeouts))
        .map((p) => [p.name, p]),
    ),
    unmounted: of.unmounted,
    accounts: accountsOf(root.accounts),
    defaults: defaultsOf(root.defaults),
    models: new Map(Object.entries(root.models).map(([name, said]) => [name, routeOf(name, said)])),
  } satisfies Omit<GatewayConfig, "sources" | "hash">;
  return freeze({ ...config, sources: of.sources, hash: hashOf(config) });
}

const DRAIN = "300s";

function drainOf(said: any): Pick<GatewayConfig, "drainMs" | "announceMs"> {
  const { announce, for: drain = DRAIN } = isMapping(said) ? (said as any) : { for: said };
  return {
    drainMs: parseDuration(drain)!,
    announceMs: announce === undefined ? undefined : parseDuration(announce)!,
  };
}

const DAY_MS = 86_400_000;
/** Longer than anything that a person waits for, and an end all the same. */
const HOOK_TIMEOUT = "30s";

const mountedOf = ({ id, use, definition, from, version, options }: Mount): MountConfig<any> => ({
  id,
  use,
  definition,
  from,
  version,
  options,
});

function middlewareOf(mount: Mount, root: any): MiddlewareConfig {
  const said = root.middleware[Number(mount.pointer.split("/").at(-1))];
  const {
    for: only,
    timeout,
    on_error,
    trust_policy,
    isolate,
  } = (isMapping(said) ? said : {}) as any;
  return {
    ...mountedOf(mount),
    for: only,
    timeoutMs: parseDuration(timeout ?? HOOK_TIMEOUT)!,
    onError: on_error ?? "refuse",
    trustPolicy: trust_policy ?? false,
    isolate,
  };
}

function providerOf(mount: Mount, all: Mapping, timeouts: Timeouts): ProviderConfig {
  const name = Object.keys(all).find((key) => below("/providers", key) === mount.pointer)!;
  const said: any = isMapping(all[name]) ? all[name] : {};
  return {
    ...mountedOf(mount),
    name,
    credentials: mount.credentials.map((fields, i) => credentialOf(said.credentials?.[i], fields)),
    trustPolicy: said.trust_policy ?? false,
    state: said.state ?? "refuse",
    zdrFields: said.zdr_fields ?? [],
    trace: said.trace ?? "off",
    onDisconnect: said.on_disconnect ?? "cancel",
    requireReady: said.require_ready ?? false,
    timeouts: timeoutsOf(said.timeouts, timeouts),
    facts: new Map(
      Object.entries((said.models ?? {}) as Record<string, Mapping>).map(([model, facts]) => [
        model,
        factsOf(facts),
      ]),
    ),
  };
}

const credentialOf = (said: any, fields: Mapping): CredentialConfig => ({
  name: said?.name ?? "default",
  fields,
  weight: said?.weight ?? 1,
  models: said?.models,
  zdr: said?.zdr,
});

const routeOf = (name: string, said: any): ModelRoute => ({
  name,
  candidates: candidatesOf(said, "").map((candidate) => candidate.name),
  weights: new Map(
    candidatesOf(said, "").flatMap(({ name: of, weight }) =>
      weight === undefined ? [] : [[of, weight]],
    ),
  ),
  pick: said.pick ?? "ordered",
  on: (said.on ?? RETRYABLE) as readonly ErrorKind[],
  hedge: hedgeOf(said.hedge),
});

/** Before anything is built on them: a timer set too long fires at once, one of zero ends every call. */
export function checkDurations(root: any, report: Report): void {
  const check = (said: unknown, pointer: string, mayBeZero: boolean) => {
    const ms = typeof said === "string" ? parseDuration(said) : undefined;
    if (ms !== undefined && ms > LONGEST_MS) report(problem.tooLong(), pointer);
    if (ms === 0 && !mayBeZero) report(problem.zeroTimeout(), pointer);
  };
  const checkAll = (said: unknown, pointer: string) => {
    if (isMapping(said))
      for (const [key, each] of Object.entries(said)) check(each, below(pointer, key), false);
  };
  const checkTimes = (said: unknown, pointer: string) => {
    checkAll(said, pointer);
    const classes = isMapping(said) ? said["classes"] : undefined;
    if (isMapping(classes))
      for (const [name, each] of Object.entries(classes))
        checkAll(each, below(below(pointer, "classes"), name));
  };
  check(root.drain, "/drain", true);
  check(root.drain?.announce, "/drain/announce", true);
  check(root.drain?.for, "/drain/for", true);
  check(root.overload?.wait, "/overload/wait", true);
  check(root.log?.slow, "/log/slow", true);
  check(root.catalogue?.refresh, "/catalogue/refresh", false);
  check(root.files?.lifetime, "/files/lifetime", false);
  const keep = typeof root.ledger?.keep === "string" ? parseDuration(root.ledger.keep) : undefined;
  if (keep !== undefined && keep < DAY_MS) report(problem.keepsTooShort(), "/ledger/keep");
  checkTimes(root.timeouts, "/timeouts");
  for (const [said, pointer] of hedgeDurations(root.models)) check(said, pointer, false);
  if (Array.isArray(root.middleware))
    for (const [i, each] of root.middleware.entries())
      if (isMapping(each)) check(each["timeout"], `/middleware/${i}/timeout`, false);
  if (isMapping(root.providers))
    for (const [name, provider] of Object.entries(root.providers))
      if (isMapping(provider))
        checkTimes(provider["timeouts"], below(below("/providers", name), "timeouts"));
}

/** In one order of keys, whatever the file's. A definition is code: for the hash it is what it was loaded as. */
function hashOf(config: object): string {
  const canonical = (key: string, value: unknown) => {
    if (key === "definition") return undefined;
    if (value instanceof Map) return [...value];
    if (typeof value === "bigint") return `${value}n`;
    if (!isMapping(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  return createHash("sha256").update(JSON.stringify(config, canonical)).digest("hex");
}

/** Definitions belong to their plugins and are left alone. */
function freeze<T>(value: T, key = ""): T {
  if (key === "definition" || typeof value !== "object" || value === null) return value;
  if (value instanceof Map) for (const each of value.values()) freeze(each);
  else for (const [k, each] of Object.entries(value)) freeze(each, k);
  return Object.freeze(value);
}
