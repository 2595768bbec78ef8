// Errors in this protocol's own shape.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import { openaiError } from "../../failure/openai-error.ts";

export const faultBody = (of: Fault): JsonObject => ({ error: openaiError(of) });

export const encodeFault = (of: Fault): ErrorResponse => ({ body: faultBody(of) });

/** In a stream an error is a chunk that is no chunk: SDKs raise on it. No `[DONE]` follows, because nothing was done. */
export const faultChunk = (of: Fault): string => `data: ${JSON.stringify(faultBody(of))}\n\n`;
