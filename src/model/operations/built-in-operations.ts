import type { OperationSpec } from "./operation-spec.ts";
import { builtInOperations } from "./index.ts";

/** Operations that the gateway supports without any package, by name and in the order of names. */
export const BUILT_IN_OPERATIONS: ReadonlyMap<string, OperationSpec> = new Map<
  string,
  OperationSpec
>(
  builtInOperations
    .map(({ operation }): [string, OperationSpec] => [operation.name, operation])
    .toSorted(([a], [b]) => (a < b ? -1 : 1)),
);

/** Frontends of these operations that every gateway has by default. */
export const OPERATION_FRONTENDS: readonly string[] = builtInOperations.flatMap(
  ({ frontends }) => frontends,
);
