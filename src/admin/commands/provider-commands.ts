// Commands about providers: their health, a test call, and the end of a cooldown. Call counts are
// read from existing statistics, so no request is sent to a provider.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { ListStatus } from "../../catalog/list-refresher.ts";
import { createPricedExample } from "../../money/price.ts";
import { chatOperation } from "../../model/operations/chat-operation.ts";
import { fail } from "../../model/error.ts";
import type { RequestRecordFault } from "../../plugin/observer.ts";
import type { PoolStats, CooldownState } from "../../plugin/gateway-stats.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import type { Credential, MountedProvider } from "../../pipeline/exchange/mounted.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";
import type { Outage } from "../../runtime/requests/outages.ts";
import { isRoutedRequest, type RequestRing } from "../../runtime/requests/request-ring.ts";
import type { StatsRow } from "../../runtime/requests/request-stats.ts";
import type { Services } from "../../runtime/services.ts";
import type { Gateway, GatewayStatus } from "../../runtime/gateway-api.ts";
import type { WorkerPool } from "../../runtime/workers/worker-pool.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import { assertMounted } from "./model-commands.ts";
import { type TestCallResult, TestCalls } from "./test-calls.ts";

/** A failed call, without its message. */
export interface RecentFault extends RequestRecordFault {
  readonly at: number;
  /** ID of the call's request. */
  readonly request: string;
  readonly model: string;
  readonly credential: string;
}

export interface CredentialHealth {
  readonly name: string;
  readonly weight: number;
  /** Cooldowns of the credential or of individual models. */
  readonly cooldowns: readonly CooldownState[];
  /** State of the live model list. Undefined if the provider has none. */
  readonly modelList: ListStatus | undefined;
}

export interface ProviderHealth {
  readonly name: string;
  /** Protocols of its endpoints. "native" for a plugin's own protocol. */
  readonly protocols: readonly string[];
  /** Number of known models. */
  readonly modelCount: number;
  readonly credentials: readonly CredentialHealth[];
  /** Calls of the last hour. Undefined if there were none. */
  readonly lastHour: StatsRow | undefined;
  /** Newest first. */
  readonly recentFaults: readonly RecentFault[];
  /** Cooldowns, newest first, at most 20. */
  readonly outages: readonly Outage[];
  /** Connections to its origins, over all processes. */
  readonly pools: readonly PoolStats[];
}

/** Result of `providers.list`. */
export interface ProvidersHealth {
  readonly providers: readonly ProviderHealth[];
  /** Configured providers that `when:` excludes. */
  readonly unmountedProviders: GatewayStatus["unmountedProviders"];
  /** Start of the call statistics. */
  readonly countedSince: number;
}

const HOUR_MS = 3_600_000;
/** Maximum number of faults per provider. */
const MAX_FAULTS = 5;
/** Maximum number of failed requests in the history that are searched for faults. */
const MAX_FAILED_REQUESTS = 500;

export interface ProviderCommandsOptions {
  readonly current: () => BuiltGeneration;
  readonly services: Pick<Services, "requestHistory" | "stats" | "targetHealth">;
  readonly gateway: Pick<Gateway, "status">;
  /** The other processes. */
  readonly workerPool: () => Pick<WorkerPool, "call"> | undefined;
}

export function createProviderCommands(options: ProviderCommandsOptions) {
  const tests = new TestCalls();
  return withInputChecks({
    "providers.list": (): Promise<ProvidersHealth> => readProvidersHealth(options),
    "providers.test": async ({ provider, credential, model }) => {
      const built = options.current();
      const tested: TestCallResult[] = [];
      for (const one of resolveCredentials(built, provider, credential)) {
        const testModel = model ?? findCheapestModel(built, provider, one);
        tested.push(
          testModel === undefined
            ? { credential: one.name, ok: false, model: null, reason: NO_MODEL_MESSAGE }
            : await tests.run(built.gen, { provider, credential: one.name, model: testModel }),
        );
      }
      return { tests: tested };
    },
    "providers.reset": async ({ provider, credential }) => {
      const reset = resolveCredentials(options.current(), provider, credential).map(
        ({ name }) => name,
      );
      options.services.targetHealth.reset(provider, credential);
      await options.workerPool()?.call("resetCooldowns", provider, credential);
      return { reset };
    },
  });
}

const NO_MODEL_MESSAGE =
  "The provider has no known chat model. Specify a model, because other calls can " +
  "be expensive.";

/** Returns one or all credentials of a provider. */
function resolveCredentials(
  { providers }: BuiltGeneration,
  provider: string,
  credential: string | undefined,
): readonly Credential[] {
  const { credentials } = providers.get(assertMounted(providers, provider))!;
  const found = credentials.filter(({ name }) => credential === undefined || name === credential);
  return found.length > 0
    ? found
    : fail(
        "not_found",
        `${provider} has no credential "${credential}". It has: ${credentials.map(({ name }) => name).join(", ")}.`,
        { code: "no_such_credential" },
      );
}

/** Returns the cheapest model that the credential may call. Models without a price are last. */
function findCheapestModel(
  { gen }: BuiltGeneration,
  provider: string,
  { models }: Credential,
): string | undefined {
  const now = wallClock();
  let best: { model: string; nano: bigint | null } | undefined;
  for (const { id, price, retires } of gen.catalog.list({ operation: "chat", provider })) {
    if (!id.startsWith(`${provider}/`)) continue;
    const model = id.slice(provider.length + 1);
    if (retires !== undefined && Date.parse(retires) < now) continue;
    if (!(models?.some((pattern) => matchesPattern(pattern, model)) ?? true)) continue;
    const { nano } = createPricedExample(chatOperation, price, now);
    if (!best || (nano !== null && (best.nano === null || nano < best.nano)))
      best = { model, nano };
  }
  return best?.model;
}

async function readProvidersHealth(options: ProviderCommandsOptions): Promise<ProvidersHealth> {
  const { providers, gen } = options.current();
  const { stats: readings, requestHistory } = options.services;
  const [status, { cooldowns, pools }] = await Promise.all([options.gateway.status(), readings()]);
  const { requestStats, recentRequests, outages } = requestHistory!;
  const hours = new Map(
    requestStats.recentRows("provider", HOUR_MS).map((row) => [row.name, row] as const),
  );
  const faults = recentFaultsByProvider(recentRequests);
  const models = new Map<string, number>();
  for (const { id, provider } of gen.catalog.list())
    if (id.startsWith(`${provider}/`)) models.set(provider, (models.get(provider) ?? 0) + 1);
  return {
    providers: [...providers.values()].map((one) => ({
      name: one.name,
      protocols: [...new Set(one.endpoints.map(({ protocol }) => protocol?.id ?? "native"))],
      modelCount: models.get(one.name) ?? 0,
      credentials: one.credentials.map(({ name, weight }) => ({
        name,
        weight,
        cooldowns: cooldowns.filter(
          (rest) => rest.provider === one.name && rest.credential === name,
        ),
        modelList: status.modelLists.find(
          (list) => list.provider === one.name && list.credential === name,
        ),
      })),
      lastHour: hours.get(one.name),
      recentFaults: faults.get(one.name) ?? [],
      outages: outages.listOf(one.name),
      pools: poolsOf(one, pools),
    })),
    unmountedProviders: status.unmountedProviders,
    countedSince: requestStats.countedSince,
  };
}

function recentFaultsByProvider(ring: RequestRing): ReadonlyMap<string, RecentFault[]> {
  const found = new Map<string, RecentFault[]>();
  const failed = ring.find(
    (over) => isRoutedRequest(over) && over.calls.some(({ fault }) => fault !== undefined),
    MAX_FAILED_REQUESTS,
  );
  for (const over of failed)
    if (isRoutedRequest(over))
      for (const { fault, provider, model, credential } of over.calls) {
        const faults = found.get(provider) ?? [];
        if (!fault || faults.length >= MAX_FAULTS) continue;
        faults.push({ ...fault, at: over.at, request: over.id, model, credential });
        found.set(provider, faults);
      }
  return found;
}

function poolsOf({ endpoints }: MountedProvider, all: readonly PoolStats[]): PoolStats[] {
  const origins = new Set(
    endpoints.flatMap(({ transport, definition }) => {
      const origin = transport?.origin ?? URL.parse(definition.base ?? "")?.origin;
      return origin === undefined ? [] : [origin];
    }),
  );
  return all.filter(({ origin }) => origins.has(origin));
}
