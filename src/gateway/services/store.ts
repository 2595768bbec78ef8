// A config's store: set up like every plugin, and opened. It is there before the gateway's other services, and has the context's alone.
import { originsOf } from "../../config/origins.ts";
import { problem } from "../../config/problems.ts";
import type { GatewayConfig } from "../../config/types.ts";
import type { Scope } from "../../lib/scope.ts";
import { fail } from "../../model/error.ts";
import { strangerMade } from "../../plugin/members.ts";
import type { Store } from "../../plugin/store.ts";
import { createContext } from "../generation/context.ts";
import type { ContextServices } from "./services.ts";

const LEASE_MS = 60_000;

export async function setUpStore(
  { store }: Pick<GatewayConfig, "store">,
  contextServices: ContextServices,
  scope: Scope,
): Promise<Store> {
  const catalogue = () => fail("internal", "A store has no catalogue.");
  const origins = originsOf(store.definition, store.options);
  const ctx = createContext({ id: "store", scope, services: contextServices, origins, catalogue });
  const made = await store.definition.setup(store.options, ctx);
  const stranger = strangerMade("store", made);
  if (stranger) {
    const { part, name, near } = stranger;
    const { message, hint } = problem.unknownMember(store.use, part, name, near);
    fail("invalid", hint === undefined ? message : `${message}; ${hint}`);
  }
  return made as Store;
}

/** Only while no other process has it. */
export async function openStore(
  config: Pick<GatewayConfig, "store">,
  contextServices: ContextServices,
  scope: Scope,
): Promise<Store> {
  const store = await setUpStore(config, contextServices, scope);
  const { presumed } = await store.open({ instance: crypto.randomUUID(), leaseMs: LEASE_MS });
  if (presumed > 0)
    contextServices.log.warn(
      { presumed },
      "calls that a crash left open were settled as estimated",
    );
  return store;
}
