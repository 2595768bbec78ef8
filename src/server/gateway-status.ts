// Creates the status of a gateway as seen by its own process.
import type { ListRefresher } from "../catalog/list-refresher.ts";
import type { GenerationSlot } from "../runtime/generation/generation-slot.ts";
import type { Services } from "../runtime/services.ts";
import { listUnreachablePlugins } from "../runtime/health/unreachable-plugins.ts";
import { readInstances } from "../runtime/services/store-instances.ts";
import type { BuiltGeneration } from "../runtime/generation/build-generation.ts";
import type { FrontendStatus, Gateway, GatewayStatus } from "../runtime/gateway-api.ts";

export async function createStatus(
  { url, adminUrl, stateDir }: Pick<Gateway, "url" | "adminUrl" | "stateDir">,
  of: Pick<
    GatewayStatus,
    "version" | "file" | "startedAt" | "urls" | "lastReload" | "lastHotRestart"
  > & {
    readonly services: Services;
    readonly stage: GenerationSlot;
    readonly refresh: ListRefresher;
    /** Status of the previous gateway while it has open requests. */
    readonly before: Promise<GatewayStatus["oldProcess"]> | undefined;
  },
): Promise<GatewayStatus> {
  const { services, stage, refresh, before, ...more } = of;
  const { built, config, loadedAt } = stage.current;
  return {
    ...more,
    pid: process.pid,
    url,
    adminUrl,
    stateDir,
    // The port may be open shortly before its URL is known.
    state: more.urls.length === 0 && stage.state !== "draining" ? "starting" : stage.state,
    ledgerOutage: services.ledgerAvailability.outage,
    generation: built.gen.number,
    frontends: frontendStatusesOf(built),
    configHash: config.hash,
    loadedAt,
    generations: stage.generations(),
    unmountedProviders: [...config.unmountedProviders].map(([provider, why]) => ({
      provider,
      reason: why,
    })),
    modelLists: refresh.status(),
    cooldowns: services.targetHealth.describeCooldowns(),
    quarantinedHooks: services.hookBreakers.list(),
    unreachablePlugins: listUnreachablePlugins(built),
    latencies: services.targetHealth.latencies(),
    files: services.fileStore.counts(),
    instances: await readInstances(services.store),
    oldProcess: await before,
  };
}

const frontendStatusesOf = ({ frontends }: Pick<BuiltGeneration, "frontends">): FrontendStatus[] =>
  frontends
    .filter(({ server }) => server)
    .map(({ name, routes }) => ({
      name,
      paths: routes.flatMap((route) =>
        "actionType" in route && route.actionType === "generate" ? [route.path].flat() : [],
      ),
    }));
