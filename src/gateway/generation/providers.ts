// The providers of gateway.yaml, set up, with a pool behind every endpoint.
import { wallClock } from "../../lib/wall-clock.ts";
import type { GatewayConfig, ProviderConfig } from "../../config/types.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { MountedProvider } from "../../walk/mounted.ts";
import { mountEndpoint } from "./mounting.ts";
import type { PluginSetup } from "./plugin-setup.ts";

/** A claim that ends within this time is worth a warning: an update of the package takes time to reach every operator. */
const WARN_MS = 30 * 86_400_000;

/** `probe`: this generation is about to serve, and its operator should hear of what ends soon. */
export async function mountProviders(
  config: GatewayConfig,
  setup: PluginSetup,
  probe: boolean,
): Promise<Map<string, MountedProvider>> {
  const providers = new Map<string, MountedProvider>();
  for (const mounted of config.providers.values()) {
    const provider = await setup.run<Provider>(mounted);
    if (!provider) continue;
    if (probe) warnOfEnd(mounted, setup);
    providers.set(mounted.name, mountedProvider(mounted, provider, setup));
  }
  return providers;
}

function warnOfEnd({ name, definition }: ProviderConfig, { services }: PluginSetup): void {
  const expires = definition.data?.expires;
  if (expires !== undefined && Date.parse(expires) < wallClock() + WARN_MS)
    services.log.warn(
      { provider: name, expires },
      "what is known of a provider's data policy ends, and is then unknown: Service-ZDR will refuse it",
    );
}

function mountedProvider(
  mounted: ProviderConfig,
  provider: Provider,
  setup: PluginSetup,
): MountedProvider {
  const { definition, timeouts } = mounted;
  const { origins, metadata } = setup.needsOf(mounted);
  return {
    name: mounted.name,
    provider,
    data: definition.data,
    exceptions: definition.exceptions ?? [],
    trusted: mounted.trustPolicy || (mounted.from === "built-in" && atHome(mounted)),
    state: mounted.state,
    zdrFields: mounted.zdrFields,
    trace: mounted.trace,
    onDisconnect: mounted.onDisconnect,
    timeouts,
    endpoints: provider.endpoints.flatMap((endpoint) => {
      const built = mountEndpoint(
        endpoint,
        timeouts.connectMs,
        setup.services,
        setup.scope,
        metadata,
      );
      if ("why" in built) setup.refuse(mounted, built.why);
      return "why" in built ? [] : [built];
    }),
    credentials: mounted.credentials,
    origins,
    metadata,
    proxy: setup.services.proxy,
  };
}

/** A provider's known data policy holds for its own address. Behind another address there is another service. */
function atHome({ definition, options }: ProviderConfig): boolean {
  const usual = definition.options?.properties?.["base_url"]?.default;
  const given = (options as { base_url?: unknown }).base_url;
  if (typeof usual !== "string" || typeof given !== "string") return true;
  return URL.parse(given)?.origin === new URL(usual).origin;
}
