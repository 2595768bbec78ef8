// Builds the frozen config from values that were read, validated, and loaded before. Only problems
// that involve two values are detected here.
import { CLIENT_CREDENTIAL } from "../model/usage.ts";
import { createHash } from "node:crypto";
import { MAX_TIMER_MS, parseDuration } from "../lib/time/units.ts";
import { toAccountConfigs, toKeyDefaults } from "./sections/account-config.ts";
import { toViews } from "./sections/view-config.ts";
import { toAdminConfig } from "./sections/admin-config.ts";
import { toScopeConfigs } from "./sections/scope-config.ts";
import { toFactsOverride } from "./sections/model-facts.ts";
import { listHedgeDurations, toHedgeDelays } from "./sections/hedge.ts";
import { toListenConfigs } from "./sections/listen-config.ts";
import type { PluginMount } from "./mount-plugins.ts";
import { problem } from "./problems.ts";
import { candidateReferences } from "./name-references.ts";
import { resolveSection } from "./resolved-section.ts";
import { CORE_OPTIONS, SHUTDOWN_OPTIONS } from "./schema/core-options.ts";
import type { ReportProblem } from "./source/substitute-references.ts";
import {
  childPointer,
  isMapping,
  type Mapping,
  pointerSegments,
  valueAt,
} from "./source/config-tree.ts";
import type {
  ModelRoute,
  CredentialConfig,
  GatewayConfig,
  MountConfig,
  MiddlewareConfig,
  ProviderConfig,
  Timeouts,
  CallTimes,
} from "./gateway-config.ts";

export interface ResolveContext {
  readonly file: string;
  readonly sources: readonly string[];
  readonly unmountedProviders: ReadonlyMap<string, string>;
}

/**
 * @param root The config in its long form, with defaults filled in.
 */
export function resolveConfig(
  root: any,
  mounts: readonly PluginMount[],
  { file, sources, unmountedProviders }: ResolveContext,
): GatewayConfig {
  const timeouts = toTimeouts(root.timeouts, undefined);
  const mountsOf = (kind: PluginMount["kind"]) => mounts.filter((mount) => mount.kind === kind);
  const config = {
    ...resolveSection(CORE_OPTIONS, root),
    file,
    shutdown: resolveSection(SHUTDOWN_OPTIONS, root.shutdown),
    workers: root.workers,
    listen: toListenConfigs(root.listen),
    proxy: root.proxy && { url: root.proxy.url, bypassHosts: root.proxy.bypass },
    admin: toAdminConfig(root.admin),
    timeouts,
    writeTimeoutMs: parseDuration(root.timeouts.client_write)!,
    pingIntervalMs: parseDuration(root.timeouts.client_ping)!,
    store: toMountConfig(mountsOf("store")[0]!),
    frontends: mountsOf("frontend").map(toMountConfig),
    middleware: mountsOf("middleware").map((mount) =>
      toMiddlewareConfig(mount, valueAt(root, mount.pointer)),
    ),
    observers: mountsOf("observer").map(toMountConfig),
    providers: new Map(
      mountsOf("provider")
        .map((mount) => toProviderConfig(mount, valueAt(root, mount.pointer), timeouts))
        .map((provider) => [provider.name, provider]),
    ),
    unmountedProviders,
    accounts: toAccountConfigs(root.accounts),
    scopes: toScopeConfigs(root.scopes),
    keyDefaults: toKeyDefaults(root.key_defaults),
    views: toViews(root.views),
    models: new Map(
      Object.entries(root.models).map(([name, route]) => [name, toModelRoute(name, route)]),
    ),
  } satisfies Omit<GatewayConfig, "sources" | "hash">;
  return deepFreeze({ ...config, sources, hash: hashConfig(config) });
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

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

const toMiddlewareConfig = (mount: PluginMount, entry: any): MiddlewareConfig => ({
  ...toMountConfig(mount),
  scope: entry.for,
  timeoutMs: parseDuration(entry.timeout)!,
  onError: entry.on_error,
  trustPolicy: entry.trust_policy,
  isolate: entry.isolate,
});

const toProviderConfig = (mount: PluginMount, entry: any, timeouts: Timeouts): ProviderConfig => ({
  ...toMountConfig(mount),
  name: pointerSegments(mount.pointer)[1]!,
  credentials: mount.credentials.map((fields, i) =>
    entry.credential === "client"
      ? {
          ...toCredentialConfig({ name: CLIENT_CREDENTIAL }, {}),
          clientAccounts: entry.client_accounts,
        }
      : toCredentialConfig(entry.credentials?.[i], fields),
  ),
  trustPolicy: entry.trust_policy,
  stateMode: entry.state_mode,
  zdrAllowedFields: entry.zdr_allowed_fields ?? [],
  traceMode: entry.trace,
  onDisconnect: entry.on_disconnect,
  requireReady: entry.require_ready,
  timeouts: toTimeouts(entry.timeouts, timeouts),
  facts: new Map(
    Object.entries((entry.models ?? {}) as Record<string, Mapping>).map(([model, facts]) => [
      model,
      toFactsOverride(facts),
    ]),
  ),
});

/** @param entry Undefined for the credential in `with:`, which has no name. */
const toCredentialConfig = (entry: any, fields: Mapping): CredentialConfig => ({
  name: entry?.name ?? "default",
  fields,
  weight: entry?.weight ?? 1,
  models: entry?.models,
  zdr: entry?.zdr,
});

const toModelRoute = (name: string, route: any): ModelRoute => {
  const candidates = candidateReferences(route, "");
  return {
    name,
    candidates: candidates.map((candidate) => candidate.name),
    weights: new Map(
      candidates.flatMap(({ name: of, weight }) => (weight === undefined ? [] : [[of, weight]])),
    ),
    pick: route.pick,
    fallbackOn: route.fallback_on,
    hedge: toHedgeDelays(route.hedge),
  };
};

/**
 * Validates durations before they are used: a timer that is too long fires immediately, and a
 * timeout of zero ends every call.
 */
export function validateDurations(root: any, report: ReportProblem): void {
  const check = (value: unknown, pointer: string, mayBeZero: boolean) => {
    const ms = typeof value === "string" ? parseDuration(value) : undefined;
    if (ms !== undefined && ms > MAX_TIMER_MS) report(problem.tooLong(), pointer);
    if (ms === 0 && !mayBeZero) report(problem.zeroTimeout(), pointer);
  };
  const checkAll = (durations: unknown, pointer: string) => {
    if (isMapping(durations))
      for (const [key, each] of Object.entries(durations))
        check(each, childPointer(pointer, key), false);
  };
  const checkTimes = (timeouts: unknown, pointer: string) => {
    checkAll(timeouts, pointer);
    const classes = isMapping(timeouts) ? timeouts["classes"] : undefined;
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
  check(root.prices?.every, "/prices/every", false);
  const every = root.prices?.every;
  const refresh = typeof every === "string" ? parseDuration(every) : undefined;
  if (refresh !== undefined && refresh > 0 && refresh < MINUTE_MS)
    report(problem.refreshTooShort(), "/prices/every");
  check(root.files?.lifetime, "/files/lifetime", false);
  const configuredRetention = root.ledger?.retention;
  const retention =
    typeof configuredRetention === "string" ? parseDuration(configuredRetention) : undefined;
  if (retention !== undefined && retention < DAY_MS)
    report(problem.retentionTooShort(), "/ledger/retention");
  checkTimes(root.timeouts, "/timeouts");
  for (const [duration, pointer] of listHedgeDurations(root.models))
    check(duration, pointer, false);
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

/** Freezes the value recursively. Definitions are skipped, because they belong to their plugins. */
function deepFreeze<T>(value: T, key = ""): T {
  if (key === "definition" || typeof value !== "object" || value === null) return value;
  if (value instanceof Map) for (const each of value.values()) deepFreeze(each);
  else for (const [k, each] of Object.entries(value)) deepFreeze(each, k);
  return Object.freeze(value);
}

// Timeouts for the phases of a call. The most specific setting is used, in this order: the
// provider's for the class, the provider's, the gateway's for the class, the gateway's.

const TIME_KEYS = { first_byte: "firstByteMs", idle: "idleMs", total: "totalMs" } as const;

/** Base of the gateway's own timeouts, for which every key has a default. */
const NO_TIMEOUTS: Partial<Timeouts> & Pick<Timeouts, "classes"> = { classes: new Map() };

/**
 * @param defaults The gateway's timeouts, for those of a provider.
 */
function toTimeouts(raw: any, defaults?: Timeouts): Timeouts {
  const own = toCallTimes(raw);
  const { connectMs, classes: of, ...usual } = defaults ?? NO_TIMEOUTS;
  const plain = { ...usual, ...own } as CallTimes;
  const classes = new Map<string, CallTimes>();
  for (const [name, times] of of)
    classes.set(name, { ...plain, ...differingTimes(times, usual as CallTimes), ...own });
  for (const [name, times] of Object.entries(isMapping(raw?.classes) ? raw.classes : {}))
    classes.set(name, { ...(classes.get(name) ?? plain), ...toCallTimes(times) });
  return {
    connectMs: raw?.connect === undefined ? connectMs! : parseDuration(raw.connect)!,
    ...plain,
    classes,
  };
}

function toCallTimes(raw: any): Partial<CallTimes> {
  const own: { -readonly [K in keyof CallTimes]?: number } = {};
  for (const [key, name] of Object.entries(TIME_KEYS))
    if (raw?.[key] !== undefined) own[name] = parseDuration(raw[key])!;
  return own;
}

/** Returns the timeouts of a class that differ from the timeouts without a class. */
const differingTimes = (times: CallTimes, plain: CallTimes): Partial<CallTimes> =>
  Object.fromEntries(
    Object.values(TIME_KEYS)
      .filter((name) => times[name] !== plain[name])
      .map((name) => [name, times[name]]),
  );
