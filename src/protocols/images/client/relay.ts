// The verbatim lane: bytes pass as they came, pictures are not even decoded. The tap looks for the counts.
import { eventObject } from "../../event-object.ts";
import { fail } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import type { Usage } from "../../../model/usage.ts";
import { throwFailure } from "../../failure/failure.ts";
import { numeric, object, text } from "../../json.ts";
import { EventRelay, eventOf, frames, gather } from "../../sse/index.ts";
import { CAP, sum } from "./stream.ts";
import { failure } from "../server/fault.ts";
import type { ImageHead } from "../../sniff.ts";
import { pictureIn, relayWhole } from "./relay-whole.ts";
import { tokensOf, usageSeen } from "../usage.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? streamed(sink, to) : relayWhole(sink, to);

/** Of a picture that is made, and of one that is changed. */
const PARTIAL: ReadonlySet<unknown> = new Set([
  "image_generation.partial_image",
  "image_edit.partial_image",
]);

function streamed(sink: RelaySink, to: AnswerContext): Relay {
  const out = gather((b) => sink.bytes(b));
  const wanted = numeric(to.body["n"]) ?? 1;
  const seen: (ImageHead | undefined)[] = [];
  let usage: Usage | undefined;
  let over = false;

  const finish = (): void => {
    out.flush();
    over = true;
    sink.usage(usage ? { type: "usage", usage } : usageSeen(undefined, seen));
    sink.finish("stop");
  };
  const events = frames((b, from, till) => {
    const bytes = b.subarray(from, till);
    const event = eventOf(bytes);
    // No event belongs to an answer that has ended.
    if (over && event && event.data !== "[DONE]") return;
    if (event && event.data !== "[DONE]") {
      // A partial image says nothing that is counted.
      if (PARTIAL.has(event.event)) sink.content();
      else completed(eventObject(event.data));
    }
    out.range(b, from, till);
  }, CAP);
  const completed = (said: JsonObject): void => {
    if (said["type"] === "error" || object(said["error"])) {
      out.flush();
      throwFailure(said);
    }
    const picture = pictureIn(said);
    if (!picture) return;
    sink.content();
    if (text(said["type"])?.endsWith(".partial_image")) return;
    seen.push(...picture);
    usage = sum(usage, tokensOf(object(said["usage"])));
    if (!over && seen.length >= wanted) finish();
  };

  return new EventRelay({
    events,
    out,
    over: () => over,
    end: () => {
      if (seen.length === 0)
        fail("upstream", "The provider's stream ended before its image did.", {
          code: "truncated",
        });
      finish();
    },
    fail: (f) => sink.bytes(Buffer.from(failure(f, to))),
  });
}
