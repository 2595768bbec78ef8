// Every kind that a generation knows: the gateway's own and those of mounted protocols.
import { problem } from "../../config/problems.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { OWN_WORKS } from "../../model/own-works.ts";
import type { Work } from "../../model/work.ts";
import type { MountedFrontend, MountedProvider } from "../../walk/mounted.ts";
import type { PluginSetup } from "./plugin-setup.ts";

/**
 * The first that declares a kind says what it is to lists and errors; a request is held and metered by the word of its own
 * frontend. Providers come first, since the catalogue is made before the frontends are set up.
 */
export class MountedKinds {
  readonly works: Map<string, Work> = new Map(OWN_WORKS);

  ofProviders(providers: ReadonlyMap<string, MountedProvider>): void {
    for (const { endpoints } of providers.values())
      for (const { protocol } of endpoints) this.#add(protocol?.work);
  }

  ofFrontends(frontends: readonly MountedFrontend[]): void {
    for (const { protocol } of frontends) this.#add(protocol?.work);
  }

  /** Checks the kinds that the operator gave models: a mounted protocol must know each. */
  check(config: GatewayConfig, setup: PluginSetup): void {
    for (const { id, facts } of config.providers.values())
      for (const [model, { kind }] of facts)
        if (kind !== undefined && !this.works.has(kind))
          setup.complain(
            id,
            problem.badValue(
              `models.${model}.kind: nothing that is mounted knows ${JSON.stringify(kind)}; there are ${[...this.works.keys()].join(", ")}`,
            ),
          );
  }

  #add(work: Work | undefined): void {
    if (work && !this.works.has(work.kind)) this.works.set(work.kind, work);
  }
}
