// Sets up the providers of gateway.yaml, with a connection pool for every endpoint.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { GatewayConfig, ProviderConfig, LocatedProblem } from "../../config/gateway-config.ts";
import type { Provider } from "../../plugin/provider.ts";
import { isClientCredential } from "../../pipeline/exchange/client-credential.ts";
import type { MountedEndpoint, MountedProvider } from "../../pipeline/exchange/mounted.ts";
import { mountEndpoint, createCredentialClient } from "./mount-endpoint.ts";
import type { PluginSetup, ProblemLocator } from "../plugin-host/plugin-setup.ts";
import { problem } from "../../config/problems.ts";
import { createFault, publicErrorText } from "../../model/error.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { Services } from "../services.ts";

/**
 * How long before its expiry a claim causes a warning, in milliseconds. A package update takes time
 * to reach every operator.
 */
const EXPIRY_WARNING_MS = 30 * 86_400_000;

/**
 * Sets up all providers. `probe`: this generation will serve requests, so warnings about expiring
 * claims are reported.
 */
export async function mountProviders(
  config: GatewayConfig,
  setup: PluginSetup,
  probe: boolean,
): Promise<Map<string, MountedProvider>> {
  const providers = new Map<string, MountedProvider>();
  for (const mounted of config.providers.values()) {
    const provider = await setup.setUp<Provider>(mounted);
    if (!provider) continue;
    if (probe) warnOfExpiry(mounted, setup);
    providers.set(mounted.name, createMountedProvider(mounted, provider, setup));
  }
  return providers;
}

function warnOfExpiry({ name, definition }: ProviderConfig, { services }: PluginSetup): void {
  const expires = definition.dataPolicy?.expires;
  if (expires !== undefined && Date.parse(expires) < wallClock() + EXPIRY_WARNING_MS)
    services.log.warn(
      { provider: name, expires },
      "provider data policy about to expire, Service-ZDR requests will be rejected",
    );
}

function createMountedProvider(
  mounted: ProviderConfig,
  provider: Provider,
  setup: PluginSetup,
): MountedProvider {
  const { definition, timeouts } = mounted;
  const { origins, usesMetadataService } = setup.needsOf(mounted);
  return {
    name: mounted.name,
    plugin: provider,
    dataPolicy: definition.dataPolicy,
    dataPolicyExceptions: definition.dataPolicyExceptions ?? [],
    isPolicyTrusted: mounted.trustPolicy || (mounted.isBuiltIn && usesDefaultAddress(mounted)),
    stateMode: mounted.stateMode,
    zdrFields: mounted.zdrAllowedFields,
    traceMode: mounted.traceMode,
    onDisconnect: mounted.onDisconnect,
    timeouts,
    endpoints: provider.endpoints.flatMap((endpoint) => {
      // A client's credential is not stored, so a job cannot use it.
      if ("videos" in endpoint && mounted.credentials.some(isClientCredential)) return [];
      const built = mountEndpoint(
        endpoint,
        timeouts.connectMs,
        setup.services,
        setup.scope,
        usesMetadataService,
      );
      const why = "why" in built ? built.why : clientCredentialProblem(mounted, built);
      if (why !== undefined) setup.addMountProblem(mounted, why);
      return "why" in built || why !== undefined ? [] : [built];
    }),
    credentials: mounted.credentials,
    extraOrigins: origins,
    allowsMetadataService: usesMetadataService,
    proxy: setup.services.proxy,
  };
}

/** Returns why an endpoint cannot be called with the clients' own credentials, or undefined. */
function clientCredentialProblem(
  { credentials }: ProviderConfig,
  { transport }: MountedEndpoint,
): string | undefined {
  if (!credentials.some(isClientCredential)) return undefined;
  const auth = transport?.definition.auth;
  return typeof auth === "object" && "header" in auth
    ? undefined
    : "credential: client requires an API whose key is a header, without signatures or tokens of the gateway";
}

/**
 * Whether a provider uses its default address. Its known data policy applies only to that address,
 * because another address is another service.
 */
function usesDefaultAddress({ definition, options }: ProviderConfig): boolean {
  const usual = definition.options?.properties?.["base_url"]?.default;
  const baseUrl = (options as { base_url?: unknown }).base_url;
  if (typeof usual !== "string" || typeof baseUrl !== "string") return true;
  return URL.parse(baseUrl)?.origin === new URL(usual).origin;
}

// Checks whether providers are ready before a generation serves.

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
      if (!provider?.plugin.checkReady || provider.credentials.some(isClientCredential)) return;
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
