// Whether providers are ready for a generation that is about to answer.
import { problem } from "../../config/problems.ts";
import type { GatewayConfig, Located } from "../../config/types.ts";
import { fault, sayable } from "../../model/error.ts";
import type { Scope } from "../../lib/scope.ts";
import type { MountedProvider } from "../../walk/mounted.ts";
import type { ProblemLocator } from "./plugin-setup.ts";
import type { Services } from "../services/services.ts";
import { lineTo } from "./mounting.ts";

const READY_MS = 5_000;
const LATE = "it did not say so within its time";

/** Asks each provider that has `ready`, under a deadline. A failure is a warning; with `require_ready` it is a problem. */
export async function ready(
  config: GatewayConfig,
  providers: ReadonlyMap<string, MountedProvider>,
  services: Services,
  scope: Scope,
  place: ProblemLocator,
  deadlineMs = READY_MS,
): Promise<Located[]> {
  const found: Located[] = [];
  await Promise.all(
    [...config.providers.values()].map(async (mounted) => {
      const provider = providers.get(mounted.name);
      if (!provider?.provider.ready) return;
      try {
        const signal = AbortSignal.any([scope.signal, AbortSignal.timeout(deadlineMs)]);
        await Promise.race([provider.provider.ready(lineTo(provider, 0, signal)), late(signal)]);
      } catch (error) {
        const why = services.mask.text(sayable(error));
        if (mounted.requireReady)
          found.push(place(mounted.id, problem.setupFailed(mounted.use, `not ready: ${why}`)));
        else services.log.warn({ plugin: mounted.id, err: error }, "a provider is not ready");
      }
    }),
  );
  return found;
}

/** The deadline counts for a plugin that does not look at its signal, too. */
const late = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) return reject(fault("timeout", LATE));
    const over = () => reject(fault("timeout", LATE));
    signal.addEventListener("abort", over, { once: true });
  });
