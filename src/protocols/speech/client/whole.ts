// A host's answer in one piece: an error under a 200, or what else would have been streamed.
import { formOf } from "../../../lib/media.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { throwFailure } from "../../failure/failure.ts";
import { parsed } from "../../json.ts";
import { stream } from "./stream.ts";

const OPEN = 123;
const IN_EVENTS = /^\s*(?:data|event):/;

export function whole(
  body: Buffer,
  emit: (event: ModelEvent) => void,
  _of: CallContext | undefined,
  headers: HeadersIn,
): void {
  const events = IN_EVENTS.test(body.toString("latin1", 0, 16));
  const said = body[0] === OPEN ? parsed(body.toString()) : undefined;
  if (!events && (said || formOf(headers["content-type"]) === "document")) {
    if (said?.["error"]) throwFailure(said);
    fail("upstream", "The provider answered with JSON where sound was asked for.", {
      code: "bad_answer",
    });
  }
  const decoder = stream(emit, undefined, events ? { "content-type": "text/event-stream" } : {});
  decoder.push(body);
  decoder.end();
}
