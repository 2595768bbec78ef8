import { BOUNDS } from "../../../lib/bounds.ts";
import { eventObject } from "../../event-object.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn, JsonObject } from "../../../model/values.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { sse } from "../../sse/index.ts";
import { throwFailure } from "../../failure/failure.ts";
import { ResponsesReader } from "./reader.ts";
import { whole } from "./whole.ts";
import { list, number, object, text } from "../../json.ts";

type Emit = (event: ModelEvent) => void;

/** An image stands in one event, and so in one line. */
export const CAP = BOUNDS.largeEvent.most;

export function stream(emit: Emit, headers: HeadersIn): Decoder {
  // Asked for a stream, some upstreams answer at once.
  if (/^application\/json\b/i.test(headers["content-type"] ?? "")) return collected(emit);
  const reading = new ResponsesReader(emit);
  const events = sse(
    (name, data) => {
      if (reading.finished || data === "[DONE]") return;
      const event = eventObject(data);
      read(reading, text(event["type"]) ?? name, event);
    },
    { line: CAP, event: CAP },
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!reading.finished)
        fail("upstream", "The provider's stream ended before its answer did.", {
          code: "truncated",
        });
    },
  };
}

function read(to: ResponsesReader, type: string, event: JsonObject): void {
  const at = to.place(event);
  const said = text(event["delta"]) ?? "";
  const part = `c${number(event["content_index"]) ?? 0}`;
  const summary = number(event["summary_index"]) ?? 0;
  switch (type) {
    case "response.output_text.delta":
      return to.delta(at, part, { type: "text" }, said, list(event["logprobs"]));
    case "response.function_call_arguments.delta":
    case "response.custom_tool_call_input.delta":
      return to.argument(at, said);
    case "response.reasoning_summary_text.delta":
      return to.digest(at, summary, said, false);
    case "response.reasoning_summary_text.done":
      return to.digest(at, summary, text(event["text"]) ?? "", true);
    case "response.reasoning_text.delta":
    case "response.reasoning.delta":
      return to.delta(at, `r${part.slice(1)}`, { type: "reasoning" }, said);
    case "response.reasoning_text.done":
    case "response.reasoning.done":
      return to.fill(at, `r${part.slice(1)}`, { type: "reasoning" }, text(event["text"]) ?? "");
    case "response.refusal.delta":
      return to.delta(at, part, { type: "refusal" }, said);
    case "response.output_text.done":
      return to.fill(at, part, { type: "text" }, text(event["text"]) ?? "");
    case "response.refusal.done":
      return to.fill(at, part, { type: "refusal" }, text(event["refusal"]) ?? "");
    case "response.content_part.done":
      return to.partDone(at, part, object(event["part"]) ?? {});
    case "response.output_text.annotation.added":
      return to.cite(at, part, event["annotation"] ?? null);
    case "response.function_call_arguments.done":
      return to.arguments(at, text(event["arguments"]) ?? "");
    case "response.custom_tool_call_input.done":
      return to.arguments(at, text(event["input"]) ?? "");
    case "response.image_generation_call.partial_image":
      return to.partial(at, text(event["partial_image_b64"]) ?? "");
    case "response.output_item.added":
      return to.added(at, object(event["item"]) ?? {});
    case "response.output_item.done":
      if (to.done(at, object(event["item"]) ?? {})) to.count();
      return;
    case "response.created":
    case "response.in_progress":
    case "response.queued":
      return to.start(object(event["response"]));
    case "response.completed":
    case "response.done":
    case "response.incomplete":
    case "response.failed":
    case "response.cancelled":
      return to.end({ status: type.slice("response.".length), ...object(event["response"]) });
    case "error":
      return throwFailure(event);
    default:
      // What is newer than us adds nothing that its item does not say when it is done; an error is one in any clothes.
      if (object(event["error"])) throwFailure(event);
  }
}

function collected(emit: Emit): Decoder {
  const chunks: Buffer[] = [];
  return {
    push: (chunk) => void chunks.push(chunk),
    end: () => whole(Buffer.concat(chunks), emit),
  };
}
