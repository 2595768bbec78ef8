// Files that an account keeps are reached with its key, and all clients here share ours.
import type { CallContext } from "../../../plugin/protocol.ts";
import { isStoredFile } from "../../references/index.ts";
import { failUnsupported } from "./encoding-context.ts";

/** An address that upstream may fetch for any client: as it was written. */
export function requirePublicUrl(
  url: string,
  param: string,
  of: Pick<CallContext, "stateMode">,
): string {
  if (of.stateMode !== "relay" && isStoredFile(url))
    failUnsupported("A file that Google keeps for an account", param, "state_unsupported");
  return url;
}
