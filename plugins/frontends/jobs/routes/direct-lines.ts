// Reports in batch objects which lines the gateway sends itself.
import type { Json } from "tollgate/plugin";
import { countDirect, type StoredBatch } from "../batch-record.ts";

/**
 * Returns the members of a batch object that describe these lines. None of the providers' formats has
 * a member for them, and the client has to know that their price is not that of a batch.
 */
export function encodeDirect(batch: StoredBatch): Readonly<Record<string, Json>> {
  const requests = countDirect(batch);
  return requests === 0
    ? {}
    : { tollgate: { requests_run_by_gateway: requests, price_of_these_requests: "standard" } };
}
