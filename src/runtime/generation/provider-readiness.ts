// Checks whether providers are ready before a generation serves.
import { problem } from "../../config/problems.ts";
import type { GatewayConfig, LocatedProblem } from "../../config/gateway-config.ts";
import { createFault, publicErrorText } from "../../model/error.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { MountedProvider } from "../../pipeline/exchange/mounted.ts";
import type { ProblemLocator } from "../plugin-host/plugin-setup.ts";
import type { Services } from "../services.ts";
import { createCredentialClient } from "./mount-endpoint.ts";

const READY_TIMEOUT_MS = 5_000;
const TIMEOUT_REASON = "its readiness check timed out";

/**
 * Calls `ready` of each provider that has it, with a deadline. A failure is a warning, or a problem
 * with `require_ready`.
 */
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
        else services.log.warn({ plugin: mounted.id, err: error }, "provider not ready");
      }
    }),
  );
  return found;
}

/**
 * Rejects when the signal aborts, so that the deadline also applies to a plugin that ignores the
 * signal.
 */
const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) return reject(createFault("timeout", TIMEOUT_REASON));
    const onAbort = () => reject(createFault("timeout", TIMEOUT_REASON));
    signal.addEventListener("abort", onAbort, { once: true });
  });
