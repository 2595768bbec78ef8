// How a gateway is, as its own process knows it.
import { outageOf } from "../lib/outage.ts";
import { HOOKS } from "../plugin/middleware.ts";
import { PASSABLE } from "../walk/hook-failures.ts";
import type { Refresh } from "../catalogue/refresh.ts";
import type { GenerationSlot } from "./generation/slot.ts";
import type { Services } from "./services/services.ts";
import { instancesOf } from "./services/instances.ts";
import type { BuiltGeneration } from "./generation/build.ts";
import type { FrontendStatus, Gateway, Status, UnreachablePlugin } from "./types.ts";

export async function statusOf(
  { url, adminUrl, stateDir }: Pick<Gateway, "url" | "adminUrl" | "stateDir">,
  of: Pick<Status, "version" | "file" | "startedAt" | "urls" | "lastReload" | "lastUpgrade"> & {
    readonly services: Services;
    readonly stage: GenerationSlot;
    readonly refresh: Refresh;
    /** The gateway before, while it has something under way. */
    readonly before: Promise<Status["before"]> | undefined;
  },
): Promise<Status> {
  const { services, stage, refresh, before, ...more } = of;
  const { built, config, at } = stage.current;
  return {
    ...more,
    pid: process.pid,
    url,
    admin: adminUrl,
    stateDir,
    // Its door may be open a moment before it is known where.
    state: more.urls.length === 0 && stage.state !== "draining" ? "starting" : stage.state,
    trouble: services.health.trouble,
    generation: built.gen.number,
    frontends: frontendsOf(built),
    configHash: config.hash,
    loadedAt: at,
    generations: stage.generations(),
    leftOut: [...config.unmounted].map(([provider, why]) => ({ provider, why })),
    lists: refresh.status(),
    resting: services.rests.list(),
    quarantined: services.conducts.list(),
    unreachable: unreachableIn(built),
    speeds: services.rests.speeds(),
    files: services.files.counts(),
    instances: await instancesOf(services.store),
    before: await before,
  };
}

/** Middleware of a generation that this process cannot reach. */
export const unreachableIn = ({
  middleware,
}: Pick<BuiltGeneration, "middleware">): UnreachablePlugin[] =>
  middleware.flatMap(({ id, hooks, tolerance }) => {
    const outage = outageOf(hooks);
    if (!outage) return [];
    const refuses = (Object.keys(HOOKS) as (keyof typeof HOOKS)[]).some(
      (hook) =>
        // A failure of `settle` is only logged.
        hooks[hook] && hook !== "settle" && !(tolerance.onError === "pass" && mayPass(hook)),
    );
    return [{ plugin: id, ...outage, requests: refuses ? "refused" : "passed" }];
  });

const mayPass = (hook: string): boolean => (PASSABLE as readonly string[]).includes(hook);

const frontendsOf = ({ frontends }: Pick<BuiltGeneration, "frontends">): FrontendStatus[] =>
  frontends
    .filter(({ server }) => server)
    .map(({ name, routes }) => ({
      name,
      paths: routes.flatMap((route) =>
        "op" in route && route.op === "generate" ? [route.path].flat() : [],
      ),
    }));
