import type { OperationSpec } from "./operation-spec.ts";
import operations from "./index.ts";

/** Operations that the gateway supports without any package, by name and in the order of names. */
export const BUILT_IN_OPERATIONS: ReadonlyMap<string, OperationSpec> = new Map<
  string,
  OperationSpec
>(
  operations
    .map(({ operation }): [string, OperationSpec] => [operation.name, operation])
    .toSorted(([a], [b]) => (a < b ? -1 : 1)),
);

/** Frontends of these operations that every gateway has by default. */
export const OPERATION_FRONTENDS: readonly string[] = operations.flatMap(
  ({ frontends }) => frontends,
);
