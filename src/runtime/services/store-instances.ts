// Lists the gateways on one store.
import type { InstanceState } from "../../plugin/store/store-instance.ts";
import type { Store } from "../../plugin/store/store.ts";
import { withTimeout } from "../ledger/queued-command.ts";

const TIMEOUT_MS = 2_000;

/** Returns undefined if the store does not answer in time. */
export const readInstances = async (
  store: Pick<Store, "listInstances">,
): Promise<readonly InstanceState[] | undefined> =>
  store.listInstances && withTimeout(TIMEOUT_MS, store.listInstances()).catch(() => undefined);
