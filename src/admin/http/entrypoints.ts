// Opens the interfaces for commands: the control socket and the admin listener.
import type { OidcConfig } from "../../config/gateway-config.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { ProviderClient } from "../../plugin/call.ts";
import type { GenerationSlot } from "../../runtime/generation/generation-slot.ts";
import type { ListenerHandle } from "../../runtime/http/listener.ts";
import { createCommandAudit } from "../dispatch/command-audit.ts";
import type { CommandDispatcher } from "../dispatch/command-dispatcher.ts";
import { SHELL_PRINCIPAL } from "../../runtime/access/principal.ts";
import { type ControlDispatcher, serveControl } from "../socket/control-socket.ts";
import type { Services } from "../../runtime/services.ts";
import { AdminApi } from "./admin-api.ts";
import type { AdminPrincipals } from "../../runtime/access/admin-principals.ts";
import { OidcSignIn } from "./oidc-sign-in.ts";

/**
 * Opens the control socket and the admin listener. Called before any client port is opened, so that
 * a failure is reported before clients can connect. `scope` closes the socket.
 */
export async function openEntrypoints(
  dispatcher: CommandDispatcher,
  services: Pick<Services, "adminPrincipals" | "log" | "mask" | "stateDir" | "store" | "proxy">,
  of: {
    stage: Pick<GenerationSlot, "listenAdmin" | "current">;
    scope: LifetimeScope;
    /** Descriptor that was already open when the process started. */
    fd: number | undefined;
  },
): Promise<ListenerHandle | undefined> {
  const { stage, scope, fd } = of;
  const { log, stateDir } = services;
  const holders = services.adminPrincipals!;
  scope.own(
    await serveControl({ path: stateDir, gate: createControlDispatcher(dispatcher, holders) }),
  );
  const oidc = new OidcSignIn({
    adminConfig: () => stage.current.config.admin,
    fetch: createOidcFetch(services.proxy),
    log,
  });
  const auditing = createCommandAudit(services);
  return stage.listenAdmin(
    new AdminApi({ dispatcher, adminPrincipals: holders, oidc, auditing, log }),
    fd,
  );
}

/**
 * Loaded on demand, because the module loads slowly and most gateways have no identity provider.
 */
const createOidcFetch =
  (proxy: Services["proxy"]) =>
  ({ issuer }: OidcConfig): ProviderClient["fetch"] =>
  async (to, init) => {
    const { createProviderClient } = await import("../../runtime/plugin-host/provider-client.ts");
    const credential = { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined };
    const { signal } = new AbortController();
    const line = {
      reach: undefined,
      dispatcher: undefined,
      credential,
      signal,
      allowsMetadataService: false,
    };
    return createProviderClient({
      ...line,
      allowedOrigins: new Set([new URL(issuer).origin]),
      proxy,
    }).fetch(to, init);
  };

/**
 * Creates the dispatcher of the control socket. The owner of the state directory has all rights. A
 * request with a token has only that token's rights.
 */
const createControlDispatcher = (
  dispatcher: CommandDispatcher,
  adminPrincipals: Pick<AdminPrincipals, "identifyToken">,
): ControlDispatcher => ({
  dispatch: async (name, input, authorization) =>
    dispatcher.dispatch(
      name,
      input,
      authorization === undefined
        ? SHELL_PRINCIPAL
        : await adminPrincipals.identifyToken(authorization),
    ),
});
