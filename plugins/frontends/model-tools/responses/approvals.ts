// Requests for approval of a call. The ID of a request contains the call, encrypted for the key, so
// any gateway on the store can run it later.
import { decrypt, encrypt, fail, type Context, type RequestHead } from "tollgate/plugin";

/** A call that waits for approval. */
export interface PendingCall {
  /** ID of the request for approval. */
  readonly id: string;
  /** The model's ID of the call. */
  readonly callId: string;
  readonly server: string;
  readonly name: string;
  /** JSON text of the arguments. */
  readonly args: string;
  /** Whether the gateway made other calls of the same turn, which needed no approval. */
  readonly hasOtherCalls: boolean;
  /**
   * The next call of the same turn that waits for approval, and after the last one the first one.
   * Undefined if there is no other one.
   */
  readonly next:
    | { readonly callId: string; readonly server: string; readonly name: string }
    | undefined;
  /** IDs of calls of the same turn that the client makes. */
  readonly clientCalls: readonly string[];
}

export const APPROVAL_PREFIX = "mcpr_gw_";
/** Longest arguments that can wait for approval, in characters. */
export const MAX_PENDING_ARGUMENTS = 32 * 1_024;
/** Largest number of the client's calls that an ID contains. */
const MAX_CLIENT_CALLS = 32;
const MAX_ID_LENGTH = 6 * MAX_PENDING_ARGUMENTS;

export class Approvals {
  readonly #secret: Uint8Array;

  constructor(ctx: Pick<Context, "deriveSecret">) {
    this.#secret = ctx.deriveSecret("approvals of MCP calls");
  }

  createId(x: RequestHead, call: Omit<PendingCall, "id">): string {
    const { callId, server, name, args, hasOtherCalls, next, clientCalls } = call;
    const rest = [hasOtherCalls, next ?? null, clientCalls.slice(0, MAX_CLIENT_CALLS)];
    const data = JSON.stringify([callId, server, name, args, ...rest]);
    return APPROVAL_PREFIX + encrypt(this.#secret, data, x.identity!.id).toString("base64url");
  }

  /** Returns the call of an ID. Fails for an ID that was not created for this key. */
  read(x: RequestHead, id: string, param: string): PendingCall {
    const sealed = id.startsWith(APPROVAL_PREFIX) ? id.slice(APPROVAL_PREFIX.length) : "";
    const data =
      sealed !== "" && id.length <= MAX_ID_LENGTH
        ? decrypt(this.#secret, Buffer.from(sealed, "base64url"), x.identity!.id)
        : undefined;
    if (!data)
      return fail("invalid", "Unknown approval request. Send the ID of an mcp_approval_request.", {
        param,
        code: "invalid_value",
      });
    const [callId, server, name, args, hasOtherCalls, next, clientCalls = []] = JSON.parse(
      data.toString(),
    ) as [string, string, string, string, boolean, PendingCall["next"] | null, string[]?];
    return { id, callId, server, name, args, hasOtherCalls, next: next ?? undefined, clientCalls };
  }
}
