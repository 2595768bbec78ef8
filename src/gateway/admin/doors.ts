// The doors by which commands come in: the control socket, and the admin listener's API.
import type { OidcConfig } from "../../config/types.ts";
import type { Scope } from "../../lib/scope.ts";
import type { ProviderAccess } from "../../plugin/call.ts";
import type { GenerationSlot } from "../generation/slot.ts";
import type { Listening } from "../http/listener.ts";
import { auditingOf } from "../control/auditing.ts";
import type { CommandGate } from "../control/gate.ts";
import { SHELL } from "../control/giver.ts";
import { type ControlGate, serveControl } from "../control/socket.ts";
import type { Services } from "../services/services.ts";
import { AdminApi } from "./api.ts";
import type { Holders } from "./holders.ts";
import { Oidc } from "./oidc.ts";

/** Before any port of clients: what is in the way is known before they come. `scope` ends the socket. */
export async function openDoors(
  gate: CommandGate,
  services: Pick<Services, "holders" | "log" | "mask" | "stateDir" | "store" | "proxy">,
  of: {
    stage: Pick<GenerationSlot, "listenAdmin" | "current">;
    scope: Scope;
    /** A descriptor that was open before we came. */
    fd: number | undefined;
  },
): Promise<Listening | undefined> {
  const { stage, scope, fd } = of;
  const { log, stateDir } = services;
  const holders = services.holders!;
  scope.own(await serveControl({ path: stateDir, gate: atSocket(gate, holders) }));
  const oidc = new Oidc({
    admin: () => stage.current.config.admin,
    fetch: fetchVia(services.proxy),
    log,
  });
  const auditing = auditingOf(services);
  return stage.listenAdmin(new AdminApi({ gate, holders, oidc, auditing, log }), fd);
}

/** The module takes long to load, and most gateways have no identity provider. */
const fetchVia =
  (proxy: Services["proxy"]) =>
  ({ issuer }: OidcConfig): ProviderAccess["fetch"] =>
  async (to, init) => {
    const { createLine } = await import("../generation/provider-access.ts");
    const credential = { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined };
    const { signal } = new AbortController();
    const line = { reach: undefined, dispatcher: undefined, credential, signal, metadata: false };
    return createLine({ ...line, origins: new Set([new URL(issuer).origin]), proxy }).fetch(
      to,
      init,
    );
  };

/** The owner of the state folder may do all. What asks with a token says to be that token's holder, and no more. */
const atSocket = (gate: CommandGate, holders: Pick<Holders, "presented">): ControlGate => ({
  give: async (name, input, authorization) =>
    gate.give(
      name,
      input,
      authorization === undefined ? SHELL : await holders.presented(authorization),
    ),
});
