// Providers, as an operator asks for them: how each has fared, a small call to see whether it answers, and an end of its rest.
// Numbers of calls are those that are kept anyway, so that asking costs a provider nothing.
import { wallClock } from "../../lib/wall-clock.ts";
import type { ListStatus } from "../../catalogue/refresh.ts";
import { example } from "../../money/example.ts";
import { chatWork } from "../../model/chat-work.ts";
import { fail } from "../../model/error.ts";
import type { RequestRecordFault } from "../../plugin/observer.ts";
import type { PoolReading, RestingReading } from "../../plugin/readings.ts";
import { matches } from "../../walk/candidates/pattern.ts";
import type { Credential, MountedProvider } from "../../walk/mounted.ts";
import type { BuiltGeneration } from "../generation/build.ts";
import type { Outage } from "../requests/outages.ts";
import { reachedFrontend, type RequestRing } from "../requests/ring.ts";
import type { StatsRow } from "../requests/stats.ts";
import type { Services } from "../services/services.ts";
import type { Gateway, Status } from "../types.ts";
import type { WorkerPool } from "../workers/pool.ts";
import { answering } from "./input.ts";
import { mounted } from "./model-commands.ts";
import { type Tested, TestCalls } from "./test-call.ts";

/** A call that failed, without its words. */
export interface LastFault extends RequestRecordFault {
  readonly at: number;
  /** The id of its request. */
  readonly request: string;
  readonly model: string;
  readonly credential: string;
}

export interface CredentialHealth {
  readonly name: string;
  readonly weight: number;
  /** What is known against it: of all its models, or of single ones. */
  readonly resting: readonly RestingReading[];
  /** The list of models that it was told; undefined: its provider has none to ask for. */
  readonly list: ListStatus | undefined;
}

export interface ProviderHealth {
  readonly name: string;
  /** What its endpoints speak; "native" where it is the plugin's own. */
  readonly protocols: readonly string[];
  /** How many models of it are known. */
  readonly models: number;
  readonly credentials: readonly CredentialHealth[];
  /** Its calls of the last hour; undefined: there were none. */
  readonly hour: StatsRow | undefined;
  /** The newest first. */
  readonly faults: readonly LastFault[];
  /** Its cooldowns, the newest first, 20 at most. */
  readonly outages: readonly Outage[];
  /** Connections to its origins, of all processes. */
  readonly pools: readonly PoolReading[];
}

/** The answer of `providers.list`. */
export interface ProvidersHealth {
  readonly providers: readonly ProviderHealth[];
  /** Declared, and left out by `when:`. */
  readonly leftOut: Status["leftOut"];
  /** From when on calls are counted. */
  readonly since: number;
}

const HOUR_MS = 3_600_000;
/** Of one provider. */
const FAULTS = 5;
/** Requests that failed, of those that are remembered, of which faults are taken. */
const FAILED = 500;

export interface ProviderCommandsOf {
  readonly built: () => BuiltGeneration;
  readonly services: Pick<Services, "remembered" | "readings" | "rests">;
  readonly gateway: Pick<Gateway, "status">;
  /** The other processes. */
  readonly workers: () => Pick<WorkerPool, "tell"> | undefined;
}

export function providerCommands(of: ProviderCommandsOf) {
  const tests = new TestCalls();
  return answering({
    "providers.list": (): Promise<ProvidersHealth> => health(of),
    "providers.test": async ({ provider, credential, model }) => {
      const built = of.built();
      const tested: Tested[] = [];
      for (const one of meant(built, provider, credential)) {
        const asked = model ?? cheapest(built, provider, one);
        tested.push(
          asked === undefined
            ? { credential: one.name, ok: false, model: null, why: NO_MODEL }
            : await tests.make(built.gen, { provider, credential: one.name, model: asked }),
        );
      }
      return { tests: tested };
    },
    "providers.wake": async ({ provider, credential }) => {
      const woken = meant(of.built(), provider, credential).map(({ name }) => name);
      of.services.rests.wake(provider, credential);
      await of.workers()?.tell("wake", provider, credential);
      return { woken };
    },
  });
}

const NO_MODEL = "No chat model of it is known. Name one: other calls are not cheap.";

/** One credential of a provider, or all. */
function meant(
  { providers }: BuiltGeneration,
  provider: string,
  credential: string | undefined,
): readonly Credential[] {
  const { credentials } = providers.get(mounted(providers, provider))!;
  const found = credentials.filter(({ name }) => credential === undefined || name === credential);
  return found.length > 0
    ? found
    : fail(
        "not_found",
        `${provider} has no credential "${credential}". It has: ${credentials.map(({ name }) => name).join(", ")}.`,
        { code: "no_such_credential" },
      );
}

/** What costs least of what this credential may call; what has no price comes last. */
function cheapest(
  { gen }: BuiltGeneration,
  provider: string,
  { models }: Credential,
): string | undefined {
  const now = wallClock();
  let best: { model: string; nano: bigint | null } | undefined;
  for (const { id, price, retires } of gen.catalogue.list({ kind: "chat", provider })) {
    if (!id.startsWith(`${provider}/`)) continue;
    const model = id.slice(provider.length + 1);
    if (retires !== undefined && Date.parse(retires) < now) continue;
    if (!(models?.some((pattern) => matches(pattern, model)) ?? true)) continue;
    const { nano } = example(chatWork, price, now);
    if (!best || (nano !== null && (best.nano === null || nano < best.nano)))
      best = { model, nano };
  }
  return best?.model;
}

async function health(of: ProviderCommandsOf): Promise<ProvidersHealth> {
  const { providers, gen } = of.built();
  const { readings, remembered } = of.services;
  const [status, { resting, pools }] = await Promise.all([of.gateway.status(), readings()]);
  const { stats, ring, outages } = remembered!;
  const hours = new Map(stats.recent("provider", HOUR_MS).map((row) => [row.name, row] as const));
  const faults = lastFaults(ring);
  const models = new Map<string, number>();
  for (const { id, provider } of gen.catalogue.list())
    if (id.startsWith(`${provider}/`)) models.set(provider, (models.get(provider) ?? 0) + 1);
  return {
    providers: [...providers.values()].map((one) => ({
      name: one.name,
      protocols: [...new Set(one.endpoints.map(({ protocol }) => protocol?.id ?? "native"))],
      models: models.get(one.name) ?? 0,
      credentials: one.credentials.map(({ name, weight }) => ({
        name,
        weight,
        resting: resting.filter((rest) => rest.provider === one.name && rest.credential === name),
        list: status.lists.find((list) => list.provider === one.name && list.credential === name),
      })),
      hour: hours.get(one.name),
      faults: faults.get(one.name) ?? [],
      outages: outages.of(one.name),
      pools: poolsOf(one, pools),
    })),
    leftOut: status.leftOut,
    since: stats.since,
  };
}

function lastFaults(ring: RequestRing): ReadonlyMap<string, LastFault[]> {
  const found = new Map<string, LastFault[]>();
  const failed = ring.find(
    (over) => reachedFrontend(over) && over.calls.some(({ fault }) => fault !== undefined),
    FAILED,
  );
  for (const over of failed)
    if (reachedFrontend(over))
      for (const { fault, provider, model, credential } of over.calls) {
        const mine = found.get(provider) ?? [];
        if (!fault || mine.length >= FAULTS) continue;
        mine.push({ ...fault, at: over.at, request: over.id, model, credential });
        found.set(provider, mine);
      }
  return found;
}

function poolsOf({ endpoints }: MountedProvider, all: readonly PoolReading[]): PoolReading[] {
  const origins = new Set(
    endpoints.flatMap(({ wire, endpoint }) => {
      const origin = wire?.origin ?? URL.parse(endpoint.base ?? "")?.origin;
      return origin === undefined ? [] : [origin];
    }),
  );
  return all.filter(({ origin }) => origins.has(origin));
}
