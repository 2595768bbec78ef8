// Lists middleware in other processes that cannot be reached.
import { getOutage } from "../../lib/plugin-outage.ts";
import { HOOK_COMBINATIONS } from "../../plugin/middleware.ts";
import { SKIPPABLE_HOOKS } from "../../pipeline/hooks/hook-guard.ts";
import type { UnreachablePlugin } from "../gateway-api.ts";
import type { BuiltGeneration } from "../generation/build-generation.ts";

/** Returns the middleware of a generation that this process cannot reach. */
export const listUnreachablePlugins = ({
  middleware,
}: Pick<BuiltGeneration, "middleware">): UnreachablePlugin[] =>
  middleware.flatMap(({ id, hooks, failurePolicy }) => {
    const outage = getOutage(hooks);
    if (!outage) return [];
    const refuses = (Object.keys(HOOK_COMBINATIONS) as (keyof typeof HOOK_COMBINATIONS)[]).some(
      (hook) =>
        // A failure of `settle` is only logged.
        hooks[hook] &&
        hook !== "settle" &&
        !(failurePolicy.onError === "continue" && isSkippableHook(hook)),
    );
    return [{ plugin: id, ...outage, requests: refuses ? "rejected" : "continued" }];
  });

const isSkippableHook = (hook: string): boolean =>
  (SKIPPABLE_HOOKS as readonly string[]).includes(hook);
