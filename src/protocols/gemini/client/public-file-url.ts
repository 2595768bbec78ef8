// Checks file URLs. Stored files of an account can be read with its key, and all clients share the
// gateway's key.
import type { CallContext } from "../../../plugin/protocol.ts";
import { isStoredFile } from "../../references/index.ts";
import { failUnsupported } from "./encoding-context.ts";

/**
 * Returns the URL unchanged if the provider may fetch it for any client. Throws if it is a stored
 * file.
 */
export function requirePublicUrl(
  url: string,
  param: string,
  of: Pick<CallContext, "stateMode">,
): string {
  if (of.stateMode !== "relay" && isStoredFile(url))
    failUnsupported("A file that Google stores for an account", param, "state_unsupported");
  return url;
}
