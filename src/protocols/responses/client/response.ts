// Decodes a non-streaming response, which is handled like a stream that has only an end event.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { parseObject } from "../../json-values.ts";
import { ResponsesReader } from "./reader.ts";

export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const response = parseResponseObject(body);
  new ResponsesReader(emit).end({ status: "completed", ...response });
}

/** Parses a response. Throws if a response with status 200 is anything else. */
function parseResponseObject(body: Buffer): JsonObject {
  const response =
    parseObject(body.toString("utf8")) ??
    fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
  if (response["error"] && !Array.isArray(response["output"])) throwParsedError(response);
  if (!Array.isArray(response["output"]))
    fail("upstream", "The provider's response has no output.", { code: "bad_answer" });
  return response;
}
