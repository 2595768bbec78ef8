// Batches that a provider runs. A batch contains many requests to one model, and its results are
// read when it has ended. The job engine splits the lines of a client's job into provider batches.
import type { DataPolicy } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import type { HeadersOut, Json, Opt } from "../model/values.ts";
import type { ProviderClient } from "./call.ts";

/**
 * Batches of one endpoint. A line is encoded like a request to the endpoint, with its protocol and
 * its `prepare`, and without streaming. A result contains the response in the same protocol.
 *
 * The methods keep no state. Each of them may be called in another process than the one before,
 * after a restart, and more than once. They must not retry, because the engine calls a method again
 * after a fault that can be temporary.
 */
export interface EndpointBatches {
  /** Limits of one batch. The engine creates several batches for a larger job. */
  limits: BatchLimits;
  /** Whether batches serve this model. It must be pure. Default: every model of the endpoint. */
  servesModel?(model: string): boolean;
  /**
   * More origins that the credential is bound to for batches, such as that of the storage that the
   * batch API reads. Default: the origins of the endpoint.
   */
  origins?: readonly string[];
  /**
   * Data policy of batches, if it differs from that of the endpoint. A provider that stores lines
   * or results until they are fetched has to declare this retention.
   */
  dataPolicy?: Partial<DataPolicy>;
  /**
   * Sends the lines and starts the batch. Returns a reference of up to 2 KiB to the batch and to
   * everything that was created for it. The other methods receive the reference. It must contain no
   * secret.
   */
  submit(input: BatchInput, client: BatchClient): Promise<string>;
  /**
   * Returns the reference of a batch that `submit` started with this key, or undefined if there is
   * certainly none. It is called after a `submit` whose result is unknown. If it throws, it is called
   * again later. Without it, such lines fail, because the provider may have billed them.
   */
  find?(key: string, client: BatchClient): Promise<Opt<string>>;
  /** Returns the state of a batch. */
  poll(reference: string, client: BatchClient): Promise<BatchStatus>;
  /**
   * Returns the results of a batch that has ended, in any order. `status` is what the last `poll`
   * returned. The iterable reads the provider's response as fast as the engine reads results. Lines
   * without a result are left out. Throw `fail("not_found")` if the results were deleted.
   */
  readResults(
    reference: string,
    status: BatchStatus,
    client: BatchClient,
  ): AsyncIterable<BatchResult>;
  /**
   * Requests the cancellation of a batch. The state that `poll` returns changes later. Canceling a
   * batch that has ended changes nothing.
   */
  cancel(reference: string, client: BatchClient): Promise<void>;
  /**
   * Deletes the lines and results that the provider stores for a batch that has ended. Deleting
   * them twice changes nothing. Default: the provider's retention applies.
   */
  discard?(reference: string, client: BatchClient): Promise<void>;
}

/** Limits of one batch at a provider. */
export interface BatchLimits {
  /** Maximum number of lines. */
  readonly lines: number;
  /** Maximum size of the input in bytes. The engine counts 256 bytes per line besides its body. */
  readonly bytes: number;
  /** Minimum number of lines. Default: 1. */
  readonly minLines?: Opt<number>;
}

/** A batch to be submitted. Its lines have one model, one path, and one credential. */
export interface BatchInput {
  /**
   * Key of the batch, up to 64 letters, digits, hyphens, and underscores. It is the same when the
   * submission is repeated. Send it as an idempotency key, or store it as metadata or as the name
   * of the batch, if the provider supports it.
   */
  readonly key: string;
  /** The provider's name of the model. */
  readonly model: string;
  /**
   * Path of a request outside of a batch, relative to the base URL of the endpoint, such as
   * "/chat/completions".
   */
  readonly path: string;
  /**
   * Headers that the requests would have outside of a batch, such as `anthropic-beta`. Lines with
   * other headers are in another batch.
   */
  readonly headers: HeadersOut;
  /** Number of lines. */
  readonly count: number;
  /** Sum of the lengths of all bodies, in bytes of UTF-8. */
  readonly bytes: number;
  /** Reads the lines from the first one. It may be called again, and returns the same lines. */
  lines(): AsyncIterable<BatchLine>;
}

/** One request of a batch. */
export interface BatchLine {
  /** ID of the line: 8 digits, unique in the batch. */
  readonly id: string;
  /** Body of the request as JSON text without line breaks. */
  readonly body: string;
}

/** State of a batch at the provider. */
export interface BatchStatus {
  /**
   * `running`: the provider has accepted the batch, and has not ended it. `canceling`: the
   * cancellation was requested. `ended`: nothing changes any more, and results can be read.
   */
  readonly state: "running" | "canceling" | "ended";
  /**
   * How the batch ended. Lines that ran before it was canceled or expired have results. `failed`:
   * the provider rejected the whole batch and billed nothing. Set if the state is `ended`.
   */
  readonly outcome?: Opt<"completed" | "canceled" | "expired" | "failed">;
  /** Reason of the outcome `failed`, for the client. */
  readonly message?: Opt<string>;
  /** Number of lines that have ended, if the provider reports it. */
  readonly counts?: Opt<{ readonly succeeded: number; readonly failed: number }>;
  /** Usage of all lines, if the provider reports it. */
  readonly usage?: Opt<Usage>;
  /**
   * Place of the results, such as IDs of output files. Only `readResults` reads it. Up to 4 KiB as
   * JSON.
   */
  readonly results?: Opt<Json>;
}

/** Result of one line. */
export interface BatchResult {
  /** ID of the line, as submitted. */
  readonly id: string;
  /**
   * `answered`: the provider responded with `status` and `body`, which can be an error. `canceled`
   * and `expired`: the line did not run, and `body` is undefined.
   */
  readonly outcome: "answered" | "canceled" | "expired";
  /** HTTP status. If the API has none, 200 or the status of the same error outside of a batch. */
  readonly status: number;
  /** Body of the response, in the protocol of the endpoint. */
  readonly body?: Opt<Json>;
  /** The provider's ID of the request. */
  readonly requestId?: Opt<string>;
}

/**
 * Client for the batch API under one credential. It applies the same rules as every request to the
 * provider. Credentials are sent to bound origins only, redirects are not followed, and the proxy
 * and TLS settings of the gateway apply.
 */
export interface BatchClient extends ProviderClient {
  /**
   * As `fetch` of `ProviderClient`, with bodies that are larger than memory. It resolves when the
   * headers have arrived. The body of a successful response is read as it arrives and has no size
   * limit. The body of any other response is complete.
   *
   * A function as `body` returns the pieces of the body. It is called again if the request has to be
   * sent again with a new token. Set the header `content-length` if the length is known. Otherwise
   * the body is sent in chunks. A scheme that signs the body receives `null` for it.
   */
  fetch(
    url: string | URL,
    init?: {
      method?: string;
      headers?: HeadersOut;
      body?: string | Buffer | (() => AsyncIterable<Uint8Array>);
      signal?: AbortSignal;
    },
  ): Promise<Response>;
}
