// Encodes errors in this protocol's form.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import { openaiError } from "../../failure/openai-error.ts";

export const faultBody = (of: Fault): JsonObject => ({ error: openaiError(of) });

export const encodeFault = (of: Fault): ErrorResponse => ({ body: faultBody(of) });

/**
 * Returns an error as a stream event without the form of a chunk, for which SDKs throw. No `[DONE]`
 * follows, because the response is not complete.
 */
export const faultChunk = (of: Fault): string => `data: ${JSON.stringify(faultBody(of))}\n\n`;
