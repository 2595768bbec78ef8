// Files that an account keeps are reached with its key, and all clients here share ours.
import type { CallContext } from "../../../plugin/protocol.ts";
import { isKeptFile } from "../../look/index.ts";
import { unsayable } from "./encoding.ts";

/** An address that upstream may fetch for any client: as it was written. */
export function reachable(url: string, param: string, of: Pick<CallContext, "state">): string {
  if (of.state !== "relay" && isKeptFile(url))
    unsayable("A file that Google keeps for an account", param, "state_unsupported");
  return url;
}
