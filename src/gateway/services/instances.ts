// Gateways on one store, as it names them.
import type { InstanceState } from "../../plugin/instance.ts";
import type { Store } from "../../plugin/store.ts";
import { within } from "./queued-command.ts";

const INSTANCES_MS = 2_000;

/** One that the store does not name in time is not waited for. */
export const instancesOf = async (
  store: Pick<Store, "instances">,
): Promise<readonly InstanceState[] | undefined> =>
  store.instances && within(INSTANCES_MS, store.instances()).catch(() => undefined);
