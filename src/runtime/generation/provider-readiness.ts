// Whether providers are ready for a generation that is about to answer.
import { problem } from "../../config/problems.ts";
import type { GatewayConfig, LocatedProblem } from "../../config/gateway-config.ts";
import { createFault, publicErrorText } from "../../model/error.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { MountedProvider } from "../../pipeline/exchange/mounted.ts";
import type { ProblemLocator } from "../plugin-host/plugin-setup.ts";
import type { Services } from "../services.ts";
import { createCredentialClient } from "./mount-endpoint.ts";

const READY_TIMEOUT_MS = 5_000;
const TIMEOUT_REASON = "it did not say so within its time";

/** Asks each provider that has `ready`, under a deadline. A failure is a warning; with `require_ready` it is a problem. */
export async function checkReadiness(
  config: GatewayConfig,
  providers: ReadonlyMap<string, MountedProvider>,
  services: Services,
  scope: LifetimeScope,
  locate: ProblemLocator,
  deadlineMs = READY_TIMEOUT_MS,
): Promise<LocatedProblem[]> {
  const found: LocatedProblem[] = [];
  await Promise.all(
    [...config.providers.values()].map(async (mounted) => {
      const provider = providers.get(mounted.name);
      if (!provider?.plugin.checkReady) return;
      try {
        const signal = AbortSignal.any([scope.signal, AbortSignal.timeout(deadlineMs)]);
        await Promise.race([
          provider.plugin.checkReady(createCredentialClient(provider, 0, signal)),
          rejectOnAbort(signal),
        ]);
      } catch (error) {
        const why = services.mask.maskText(publicErrorText(error));
        if (mounted.requireReady)
          found.push(locate(mounted.id, problem.setupFailed(mounted.use, `not ready: ${why}`)));
        else services.log.warn({ plugin: mounted.id, err: error }, "a provider is not ready");
      }
    }),
  );
  return found;
}

/** The deadline counts for a plugin that does not look at its signal, too. */
const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) return reject(createFault("timeout", TIMEOUT_REASON));
    const onAbort = () => reject(createFault("timeout", TIMEOUT_REASON));
    signal.addEventListener("abort", onAbort, { once: true });
  });
