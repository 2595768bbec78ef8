// Decodes a non-streaming response: an error with status 200, or the content of a stream.
import { bodyFormOf } from "../../../lib/media-type.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { parseObject } from "../../json-values.ts";
import { createDecoder } from "./stream.ts";

const OPEN = 123;
const IN_EVENTS = /^\s*(?:data|event):/;

export function decodeResponse(
  body: Buffer,
  emit: (event: ModelEvent) => void,
  _of: CallContext | undefined,
  headers: HeadersIn,
): void {
  const events = IN_EVENTS.test(body.toString("latin1", 0, 16));
  const json = body[0] === OPEN ? parseObject(body.toString()) : undefined;
  if (!events && (json || bodyFormOf(headers["content-type"]) === "document")) {
    if (json?.["error"]) throwParsedError(json);
    fail("upstream", "The provider returned JSON instead of audio.", {
      code: "bad_answer",
    });
  }
  const decoder = createDecoder(
    emit,
    undefined,
    events ? { "content-type": "text/event-stream" } : {},
  );
  decoder.push(body);
  decoder.end();
}
