// The verbatim lane of an answer that is one JSON text, and what any answer is told by.
import { fail } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { needle, valueAt } from "../../sse/index.ts";
import { wordsOf } from "./amount.ts";
import { throwFailure } from "../../failure/failure.ts";
import { isCall } from "./reader.ts";
import { ResponsesToolCounts } from "../tool-counts.ts";
import { usageOf, usageTo } from "../usage.ts";
import { list, object, objects, parsed, text } from "../../json.ts";
import { mostRuns } from "../../reported-tools.ts";

/** Whether the answer has been counted. `ran`: runs of tools that were seen on the way. */
export function report(response: JsonObject, sink: RelaySink, ran: Usage = {}): boolean {
  const tools = new ResponsesToolCounts();
  for (const item of objects(response["output"])) tools.item(item);
  const usage = usageOf(response, mostRuns(tools.usage(response), ran));
  if (!usage) return false;
  const model = text(response["model"]);
  sink.usage({ type: "usage", usage, model, tier: text(response["service_tier"]) });
  return usage.output !== undefined;
}

export const isFailure = (response: JsonObject): boolean =>
  response["status"] === "failed" ||
  response["status"] === "cancelled" ||
  object(response["error"]) !== undefined;

export function reasonOf(response: JsonObject): FinishReason {
  if (response["status"] === "incomplete") {
    const why = object(response["incomplete_details"])?.["reason"];
    return why === "content_filter" ? "filtered" : why === "max_output_tokens" ? "length" : "other";
  }
  let refused = false;
  for (const raw of list(response["output"])) {
    const item = object(raw);
    if (isCall(text(item?.["type"]) ?? "")) return "tool_calls";
    refused ||= list(item?.["content"]).some((part) => object(part)?.["type"] === "refusal");
  }
  return refused ? "refusal" : "stop";
}

const MODEL = [needle("model")];

/** One push, the whole answer; of what is not a response (a list, a deletion) nothing is ours to change. */
export function relayWhole(sink: RelaySink, to: AnswerContext): Relay {
  let ended = false;
  return {
    between: false,
    push(body) {
      const answer =
        parsed(body.toString("utf8")) ??
        fail("upstream", "The provider's answer is not JSON.", { code: "bad_answer" });
      if (answer["error"] && !Array.isArray(answer["output"])) throwFailure(answer);
      const id = text(answer["id"]);
      if (id !== undefined) sink.start(id);
      const counted = report(answer, sink);
      // A failed answer that is only read again is what was asked for; one that was asked for now has failed.
      if (to.body["input"] !== undefined && isFailure(answer)) throwFailure(answer);
      sink.content(wordsOf(answer["output"]));
      const settled = sink.finish(reasonOf(answer));
      ended = true;
      if (settled && !counted && answer["object"] === "response" && to.body["input"] !== undefined)
        return sink.bytes(
          Buffer.from(JSON.stringify({ ...answer, model: to.model, usage: usageTo(settled) })),
        );
      const from = body.indexOf(123);
      const model = answer["object"] === "response" ? valueAt(body, MODEL, from) : undefined;
      if (!model) return sink.bytes(body);
      sink.bytes(body.subarray(0, model.from));
      sink.bytes(Buffer.from(JSON.stringify(to.model)));
      sink.bytes(body.subarray(model.to));
    },
    end() {
      if (!ended) fail("upstream", "The provider's answer was empty.", { code: "bad_answer" });
    },
    fail() {},
  };
}
