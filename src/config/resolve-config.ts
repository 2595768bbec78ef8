// Builds the frozen config from values that were read, validated, and loaded. Only problems that
// involve two values can still be found here.
import { createHash } from "node:crypto";
import { dirname, resolve as path } from "node:path";
import { MAX_TIMER_MS, parseDuration, parseSize } from "../lib/time/units.ts";
import type { ErrorKind } from "../model/error.ts";
import { toAccountConfigs, toKeyDefaults } from "./sections/account-config.ts";
import { toAdminConfig } from "./sections/admin-config.ts";
import { toFactsOverride } from "./sections/model-facts.ts";
import { listHedgeDurations, toHedgeDelays } from "./sections/hedge.ts";
import { toListenConfigs } from "./sections/listen-config.ts";
import type { PluginMount } from "./mount-plugins.ts";
import { problem } from "./problems.ts";
import { candidateReferences } from "./name-references.ts";
import { DEFAULT_FALLBACK_KINDS } from "./schema/entry-schemas.ts";
import type { ReportProblem } from "./source/substitute-references.ts";
import { toTimeouts } from "./sections/timeout-config.ts";
import { childPointer, isMapping, type Mapping } from "./source/config-tree.ts";
import type {
  ModelRoute,
  CredentialConfig,
  GatewayConfig,
  MountConfig,
  MiddlewareConfig,
  ProviderConfig,
  Timeouts,
} from "./gateway-config.ts";

/** Values that the command line overrides. */
export interface ConfigOverrides {
  readonly host?: string;
  readonly port?: number;
  /** Port of the admin listener, if the config has one. */
  readonly adminPort?: number;
  /** Absolute path. */
  readonly stateDir?: string;
  readonly workers?: number | "auto";
  readonly logLevel?: GatewayConfig["log"]["level"];
}

export interface ResolveContext {
  readonly file: string;
  readonly sources: readonly string[];
  /** File that contains `state_dir`. */
  readonly stateDirFile: string;
  /** File that contains `listen`. */
  readonly listenFile: string;
  /** File that contains `admin`. */
  readonly adminFile: string;
  readonly unmountedProviders: ReadonlyMap<string, string>;
  readonly overrides: ConfigOverrides;
}

/**
 * Resolves the config.
 * @param root The raw config after validation, with defaults filled in.
 */
export function resolveConfig(
  root: any,
  mounts: readonly PluginMount[],
  of: ResolveContext,
): GatewayConfig {
  const timeouts = toTimeouts(root.timeouts, undefined);
  const { overrides } = of;
  const config = {
    file: of.file,
    listen: toListenConfigs(root.listen, of.listenFile, overrides),
    proxy: root.proxy && { url: root.proxy.url, bypassHosts: root.proxy.bypass },
    admin: toAdminConfig(root.admin, of.adminFile, overrides.adminPort),
    publicUrl: root.public_url,
    stateDir: overrides.stateDir ?? path(dirname(of.stateDirFile), root.state_dir),
    workers: overrides.workers ?? root.workers,
    ...toShutdownTimes(root.shutdown),
    allowEmpty: root.allow_empty,
    strict: root.strict,
    responseHeaders: root.response_headers,
    timeouts,
    writeTimeoutMs: parseDuration(root.timeouts.client_write)!,
    retries: { perTarget: root.retries.per_target, total: root.retries.total },
    maxBodyBytes: parseSize(String(root.max_body))!,
    bounds: {
      inFlightBytes: parseSize(String(root.bounds.in_flight))!,
      jsonValues: root.bounds.json_values,
      responseBytes: parseSize(String(root.bounds.response))!,
      connections: root.bounds.connections,
      connectionsPerAddress: root.bounds.connections_per_address,
    },
    overload: {
      maxConcurrent: root.overload.max_concurrent,
      maxQueueWaitMs: parseDuration(root.overload.max_queue_wait)!,
    },
    listRefreshMs: parseDuration(root.catalog.refresh)!,
    files: {
      ttlMs: parseDuration(root.files.lifetime)!,
      maxFileBytes: parseSize(String(root.files.max_file))!,
      maxBytes: parseSize(String(root.files.max_total))!,
      maxKeyBytes: parseSize(String(root.files.max_key))!,
    },
    requestHistory: root.request_history,
    log: {
      level: overrides.logLevel ?? root.log.level,
      slowRequestMs: parseDuration(root.log.slow_request)!,
    },
    ledger: {
      retentionMs:
        root.ledger.retention === undefined ? undefined : parseDuration(root.ledger.retention)!,
    },
    store: toMountConfig(mounts.find((m) => m.kind === "store")!),
    frontends: mounts.filter((m) => m.kind === "frontend").map(toMountConfig),
    middleware: mounts
      .filter((m) => m.kind === "middleware")
      .map((m) => toMiddlewareConfig(m, root)),
    observers: mounts.filter((m) => m.kind === "observer").map(toMountConfig),
    providers: new Map(
      mounts
        .filter((m) => m.kind === "provider")
        .map((m) => toProviderConfig(m, root.providers, timeouts))
        .map((p) => [p.name, p]),
    ),
    unmountedProviders: of.unmountedProviders,
    accounts: toAccountConfigs(root.accounts),
    keyDefaults: toKeyDefaults(root.key_defaults),
    models: new Map(
      Object.entries(root.models).map(([name, said]) => [name, toModelRoute(name, said)]),
    ),
  } satisfies Omit<GatewayConfig, "sources" | "hash">;
  return deepFreeze({ ...config, sources: of.sources, hash: hashConfig(config) });
}

const DEFAULT_SHUTDOWN_TIMEOUT = "300s";

function toShutdownTimes(
  raw: any,
): Pick<GatewayConfig, "shutdownTimeoutMs" | "shutdownAnnounceMs"> {
  const { announce, timeout = DEFAULT_SHUTDOWN_TIMEOUT } = isMapping(raw)
    ? (raw as any)
    : { timeout: raw };
  return {
    shutdownTimeoutMs: parseDuration(timeout)!,
    shutdownAnnounceMs: announce === undefined ? undefined : parseDuration(announce)!,
  };
}

const DAY_MS = 86_400_000;
/** Longer than any wait that people accept, but bounded. */
const DEFAULT_HOOK_TIMEOUT = "30s";

const toMountConfig = ({
  id,
  use,
  definition,
  loadedFrom,
  isBuiltIn,
  version,
  options,
}: PluginMount): MountConfig<any> => ({
  id,
  use,
  definition,
  loadedFrom,
  isBuiltIn,
  version,
  options,
});

function toMiddlewareConfig(mount: PluginMount, root: any): MiddlewareConfig {
  const raw = root.middleware[Number(mount.pointer.split("/").at(-1))];
  const {
    for: only,
    timeout,
    on_error,
    trust_policy,
    isolate,
  } = (isMapping(raw) ? raw : {}) as any;
  return {
    ...toMountConfig(mount),
    scope: only,
    timeoutMs: parseDuration(timeout ?? DEFAULT_HOOK_TIMEOUT)!,
    onError: on_error ?? "reject",
    trustPolicy: trust_policy ?? false,
    isolate,
  };
}

function toProviderConfig(mount: PluginMount, all: Mapping, timeouts: Timeouts): ProviderConfig {
  const name = Object.keys(all).find((key) => childPointer("/providers", key) === mount.pointer)!;
  const raw: any = isMapping(all[name]) ? all[name] : {};
  return {
    ...toMountConfig(mount),
    name,
    credentials: mount.credentials.map((fields, i) =>
      toCredentialConfig(raw.credentials?.[i], fields),
    ),
    trustPolicy: raw.trust_policy ?? false,
    stateMode: raw.state_mode ?? "reject",
    zdrAllowedFields: raw.zdr_allowed_fields ?? [],
    traceMode: raw.trace ?? "off",
    onDisconnect: raw.on_disconnect ?? "cancel",
    requireReady: raw.require_ready ?? false,
    timeouts: toTimeouts(raw.timeouts, timeouts),
    facts: new Map(
      Object.entries((raw.models ?? {}) as Record<string, Mapping>).map(([model, facts]) => [
        model,
        toFactsOverride(facts),
      ]),
    ),
  };
}

const toCredentialConfig = (raw: any, fields: Mapping): CredentialConfig => ({
  name: raw?.name ?? "default",
  fields,
  weight: raw?.weight ?? 1,
  models: raw?.models,
  zdr: raw?.zdr,
});

const toModelRoute = (name: string, raw: any): ModelRoute => ({
  name,
  candidates: candidateReferences(raw, "").map((candidate) => candidate.name),
  weights: new Map(
    candidateReferences(raw, "").flatMap(({ name: of, weight }) =>
      weight === undefined ? [] : [[of, weight]],
    ),
  ),
  pick: raw.pick ?? "ordered",
  fallbackOn: (raw.fallback_on ?? DEFAULT_FALLBACK_KINDS) as readonly ErrorKind[],
  hedge: toHedgeDelays(raw.hedge),
});

/**
 * Validates durations before anything uses them: a timer that is too long fires immediately, and
 * one of zero ends every call.
 */
export function validateDurations(root: any, report: ReportProblem): void {
  const check = (said: unknown, pointer: string, mayBeZero: boolean) => {
    const ms = typeof said === "string" ? parseDuration(said) : undefined;
    if (ms !== undefined && ms > MAX_TIMER_MS) report(problem.tooLong(), pointer);
    if (ms === 0 && !mayBeZero) report(problem.zeroTimeout(), pointer);
  };
  const checkAll = (said: unknown, pointer: string) => {
    if (isMapping(said))
      for (const [key, each] of Object.entries(said))
        check(each, childPointer(pointer, key), false);
  };
  const checkTimes = (said: unknown, pointer: string) => {
    checkAll(said, pointer);
    const classes = isMapping(said) ? said["classes"] : undefined;
    if (isMapping(classes))
      for (const [name, each] of Object.entries(classes))
        checkAll(each, childPointer(childPointer(pointer, "classes"), name));
  };
  check(root.shutdown, "/shutdown", true);
  check(root.shutdown?.announce, "/shutdown/announce", true);
  check(root.shutdown?.timeout, "/shutdown/timeout", true);
  check(root.overload?.max_queue_wait, "/overload/max_queue_wait", true);
  check(root.log?.slow_request, "/log/slow_request", true);
  check(root.catalog?.refresh, "/catalog/refresh", false);
  check(root.files?.lifetime, "/files/lifetime", false);
  const said = root.ledger?.retention;
  const retention = typeof said === "string" ? parseDuration(said) : undefined;
  if (retention !== undefined && retention < DAY_MS)
    report(problem.retentionTooShort(), "/ledger/retention");
  checkTimes(root.timeouts, "/timeouts");
  for (const [said, pointer] of listHedgeDurations(root.models)) check(said, pointer, false);
  if (Array.isArray(root.middleware))
    for (const [i, each] of root.middleware.entries())
      if (isMapping(each)) check(each["timeout"], `/middleware/${i}/timeout`, false);
  if (isMapping(root.providers))
    for (const [name, provider] of Object.entries(root.providers))
      if (isMapping(provider))
        checkTimes(
          provider["timeouts"],
          childPointer(childPointer("/providers", name), "timeouts"),
        );
}

/**
 * Hashes the config with sorted keys. A definition is code, so its `loadedFrom` and version
 * represent it.
 */
function hashConfig(config: object): string {
  const canonical = (key: string, value: unknown) => {
    if (key === "definition") return undefined;
    if (value instanceof Map) return [...value];
    if (typeof value === "bigint") return `${value}n`;
    if (!isMapping(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  return createHash("sha256").update(JSON.stringify(config, canonical)).digest("hex");
}

/** Freezes the value recursively. Skips definitions, which belong to their plugins. */
function deepFreeze<T>(value: T, key = ""): T {
  if (key === "definition" || typeof value !== "object" || value === null) return value;
  if (value instanceof Map) for (const each of value.values()) deepFreeze(each);
  else for (const [k, each] of Object.entries(value)) deepFreeze(each, k);
  return Object.freeze(value);
}
