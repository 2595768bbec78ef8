// The credential with which the gateway calls a server. One resolver serves tools, prompts, and
// resources, so that no method can use another credential. A client's own token is never sent.
import type { HeadersOut, Opt, RequestHead } from "tollgate/plugin";

/** Credential for one server and one client. */
export interface ServerCredential {
  /** Headers that are sent to the server, such as `authorization`. */
  readonly headers: HeadersOut;
  /**
   * The owner of the credential: "shared" for a credential of the operator, otherwise the ID of the
   * user. Lists and sessions are never shared between owners.
   */
  readonly owner: string;
}

/** Determines the credential of a server for each request. */
export interface CredentialResolver {
  /**
   * Returns the credential for a request. Throws a `ServerError` with a challenge if the client has
   * to connect its account first.
   */
  resolve(x: RequestHead): ServerCredential | Promise<ServerCredential>;
  /**
   * Called when the server rejected the credential with a 401. Returns another credential with which
   * the request is sent once more, or undefined if there is none.
   */
  renew?(
    rejected: ServerCredential,
    x: RequestHead,
    challenge: Opt<string>,
  ): Promise<ServerCredential | undefined>;
}
