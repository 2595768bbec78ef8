// The background mode that the kit imitates. A format knows the paths and objects of one provider,
// and a fake API keeps the responses.
import type { JsonObject } from "../../model/values.ts";
import type { BatchApiRequest } from "../batches/batch-format.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";

/** A response that a fake API keeps. */
export interface FakeResponse {
  readonly id: string;
  /** Body of the request. */
  readonly body: JsonObject;
  state: "queued" | "running" | "completed" | "failed" | "canceled";
}

/** State of a fake API that a format reads and changes. */
export interface BackgroundApiState {
  /** Responses that exist, by ID. */
  readonly responses: Map<string, FakeResponse>;
  /** Text of each complete response. */
  readonly text: string;
  /** Creates a response. */
  create(body: JsonObject): FakeResponse;
  /** Returns the response after one more poll. Undefined if there is none. */
  advance(id: string): FakeResponse | undefined;
  /** Cancels a response. Returns false if it has ended. */
  cancel(id: string): boolean;
}

/** Background mode of one provider. */
export interface BackgroundFormat {
  /** Handles a request. `route` is its path below the base URL. Undefined: there is no such path. */
  handle(
    state: BackgroundApiState,
    request: BatchApiRequest & { readonly route: string },
  ): ScriptedResponse | undefined;
}
