// Requests that a provider runs in the background: it accepts a request, and its response is read
// when it has ended. A frontend stores a record of each request, and polls the provider.
import type { HeadersOut, JsonObject, Opt } from "../../model/values.ts";
import type { BatchClient } from "../batch.ts";

/**
 * Background mode of one endpoint. A request is encoded like any other request to the endpoint, with
 * its protocol and its `prepare`.
 *
 * The methods keep no state: each may be called in another process than the one before, after a
 * restart, and more than once. They must not retry, because the caller calls a method again after a
 * fault that can be temporary.
 */
export interface EndpointBackground {
  /**
   * Starts a request. Returns a reference of up to 2 KiB, which the other methods receive. It must
   * contain no secret and no content. A fault of the kinds `upstream` and `timeout` means that it is
   * unknown whether the provider has started the request. After any other fault, the provider must
   * not have started it. If each request of `client` failed to connect or had an error status, the
   * request is not billed.
   */
  create(input: BackgroundInput, client: BatchClient): Promise<string>;
  /**
   * Returns the status of a request. Throw `fail("not_found")` if the provider does not have it any
   * more.
   */
  poll(reference: string, client: BatchClient): Promise<BackgroundStatus>;
  /**
   * Requests the cancellation. The status that `poll` returns changes later. Canceling a request
   * that has ended changes nothing.
   */
  cancel(reference: string, client: BatchClient): Promise<void>;
  /**
   * Deletes what the provider stores for a request that has ended. Deleting it twice changes
   * nothing. Default: the retention of the provider applies.
   */
  delete?(reference: string, client: BatchClient): Promise<void>;
}

/** A request to start in the background. */
export interface BackgroundInput {
  /** The provider's name of the model. */
  readonly model: string;
  /** Path of the request, relative to the base URL of the endpoint, such as "/responses". */
  readonly path: string;
  /** Headers that the request would have outside of the background. */
  readonly headers: HeadersOut;
  /**
   * Body in the protocol of the endpoint, as JSON text. It requests a streamed response. `create`
   * replaces the fields that select the background mode.
   */
  readonly body: string;
}

/** Status of a request in the background. */
export interface BackgroundStatus {
  /**
   * `queued` and `running`: the request has not ended. `completed`: the response can be used, even
   * if a limit ended it early. `failed` and `canceled`: it cannot be used.
   */
  readonly state: "queued" | "running" | "completed" | "failed" | "canceled";
  /**
   * The response, in the protocol of the endpoint, as a request outside of the background would
   * have got it. Set if the request has ended.
   */
  readonly response?: Opt<JsonObject>;
  /**
   * Whether `response` contains the usage, which is then billed. Without it, a response that failed
   * is not billed, and a canceled one is billed as an estimate. Default: true.
   */
  readonly hasUsage?: Opt<boolean>;
  /** Reason of the state `failed`, for the client. */
  readonly message?: Opt<string>;
}
