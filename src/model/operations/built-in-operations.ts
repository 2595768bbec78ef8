import * as operations from "./index.ts";
import type { OperationSpec } from "./operation-spec.ts";

/** Operations that the gateway supports without any package. */
export const BUILT_IN_OPERATIONS: ReadonlyMap<string, OperationSpec> = new Map<
  string,
  OperationSpec
>(Object.values(operations).map((operation) => [operation.name, operation]));
