// Collects the operations that a generation supports: the built-in operations and the operations of
// mounted protocols.
import { problem } from "../../config/problems.ts";
import { childPointer } from "../../config/source/config-tree.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { BUILT_IN_OPERATIONS } from "../../model/operations/built-in-operations.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { MountedFrontend, MountedProvider } from "../../pipeline/exchange/mounted.ts";
import { classesOf } from "../../pipeline/targets/timeouts.ts";
import type { PluginSetup } from "../plugin-host/plugin-setup.ts";

/**
 * The operations by name. The first protocol that declares an operation defines its description in
 * lists and errors. The declaration of a request's own frontend determines how the request is
 * reserved and metered. Providers are added first, because the catalog is built before the
 * frontends are set up.
 */
export class MountedOperations {
  readonly operations: Map<string, OperationSpec> = new Map(BUILT_IN_OPERATIONS);

  addProviders(providers: ReadonlyMap<string, MountedProvider>): void {
    for (const { endpoints } of providers.values())
      for (const { protocol } of endpoints) this.#add(protocol?.operationSpec);
  }

  addFrontends(frontends: readonly MountedFrontend[]): void {
    for (const { protocol } of frontends) this.#add(protocol?.operationSpec);
  }

  /**
   * Checks the operations and call classes that gateway.yaml names. A mounted protocol must declare
   * each of these operations.
   */
  check(config: GatewayConfig, setup: PluginSetup): void {
    const kinds = [...this.operations.keys()];
    for (const { id, facts } of config.providers.values())
      for (const [model, { operation }] of facts)
        if (operation !== undefined && !this.operations.has(operation))
          setup.addProblem(
            childPointer(
              childPointer(childPointer(providerPointerOf(id), "models"), model),
              "operation",
            ),
            problem.unknownKind(operation, kinds),
          );
    const classes = classesOf(kinds);
    for (const [name, pointer] of listTimeoutClasses(config))
      if (!classes.includes(name))
        setup.addProblem(pointer, problem.unknownClass(name, classes), "key");
  }

  #add(operation: OperationSpec | undefined): void {
    if (operation && !this.operations.has(operation.name))
      this.operations.set(operation.name, operation);
  }
}

/** Returns the JSON pointer of "providers.demo". A provider's key may contain dots. */
const providerPointerOf = (id: string): string =>
  childPointer("/providers", id.slice("providers.".length));

/** Yields every call class that gateway.yaml names, with the pointer of its key. */
function* listTimeoutClasses(
  config: GatewayConfig,
): Generator<readonly [name: string, pointer: string]> {
  const own = config.timeouts.classes;
  for (const name of own.keys()) yield [name, childPointer("/timeouts/classes", name)];
  for (const { id, timeouts } of config.providers.values())
    for (const name of timeouts.classes.keys())
      // A provider's classes include the gateway's classes.
      if (!own.has(name))
        yield [name, childPointer(`${providerPointerOf(id)}/timeouts/classes`, name)];
  for (const { name: model, hedge } of config.models.values())
    for (const name of hedge?.classes.keys() ?? [])
      yield [name, childPointer(`${childPointer("/models", model)}/hedge`, name)];
}
