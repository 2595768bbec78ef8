// Every kind that a generation knows: the gateway's own and those of mounted protocols.
import { problem } from "../../config/problems.ts";
import { below } from "../../config/tree.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { OWN_WORKS } from "../../model/own-works.ts";
import type { Work } from "../../model/work.ts";
import type { MountedFrontend, MountedProvider } from "../../walk/mounted.ts";
import { classesOf } from "../../walk/upstream/times.ts";
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

  /** Checks the kinds and the classes of calls that gateway.yaml names: a mounted protocol must know each. */
  check(config: GatewayConfig, setup: PluginSetup): void {
    const kinds = [...this.works.keys()];
    for (const { id, facts } of config.providers.values())
      for (const [model, { kind }] of facts)
        if (kind !== undefined && !this.works.has(kind))
          setup.complain(
            below(below(below(pointerOf(id), "models"), model), "kind"),
            problem.unknownKind(kind, kinds),
          );
    const classes = classesOf(kinds);
    for (const [name, pointer] of namedClasses(config))
      if (!classes.includes(name))
        setup.complain(pointer, problem.unknownClass(name, classes), "key");
  }

  #add(work: Work | undefined): void {
    if (work && !this.works.has(work.kind)) this.works.set(work.kind, work);
  }
}

/** "providers.demo" as a pointer; a provider's key may contain dots. */
const pointerOf = (id: string): string => below("/providers", id.slice("providers.".length));

/** Every class of calls that gateway.yaml names, with the pointer of its key. */
function* namedClasses(config: GatewayConfig): Generator<readonly [name: string, pointer: string]> {
  const own = config.timeouts.classes;
  for (const name of own.keys()) yield [name, below("/timeouts/classes", name)];
  for (const { id, timeouts } of config.providers.values())
    for (const name of timeouts.classes.keys())
      // A provider's classes include those of the gateway.
      if (!own.has(name)) yield [name, below(`${pointerOf(id)}/timeouts/classes`, name)];
  for (const { name: model, hedge } of config.models.values())
    for (const name of hedge?.classes.keys() ?? [])
      yield [name, below(`${below("/models", model)}/hedge`, name)];
}
