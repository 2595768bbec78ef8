// The last look of this protocol at a request before it leaves.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { refuseKept } from "../../look/index.ts";

/** What an account keeps is reached with its key, and all clients here share ours. */
export const prepare = (out: Outgoing, of: CallContext): void =>
  refuseKept(out, of.state, { code: "state_unsupported" });
