// Passthrough mode of a non-streaming response. Also reads the usage and the finish reason of any
// response.
import { fail } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asList, asObject, asObjects, parseObject, asText } from "../../json-values.ts";
import { writeJson } from "../../passthrough.ts";
import { maxRuns } from "../../reported-tool-runs.ts";
import { replaceModelName } from "../../sse/index.ts";
import { ResponsesToolCounts, usageOf, usageTo } from "../usage.ts";
import { textBytesOf } from "./event-bytes.ts";
import { isCall } from "./reader.ts";

/**
 * Reports the usage. Returns whether the output has been counted. `ran` contains the tool runs that
 * were seen in the stream.
 */
export function reportUsage(response: JsonObject, sink: PassthroughSink, ran: Usage = {}): boolean {
  const tools = new ResponsesToolCounts();
  for (const item of asObjects(response["output"])) tools.item(item);
  const usage = usageOf(response, maxRuns(tools.usage(response), ran));
  if (!usage) return false;
  const model = asText(response["model"]);
  sink.reportUsage({ type: "usage", usage, model, tier: asText(response["service_tier"]) });
  return usage.output !== undefined;
}

export const isFailure = (response: JsonObject): boolean =>
  response["status"] === "failed" ||
  response["status"] === "cancelled" ||
  asObject(response["error"]) !== undefined;

export function reasonOf(response: JsonObject): FinishReason {
  if (response["status"] === "incomplete") {
    const why = asObject(response["incomplete_details"])?.["reason"];
    return why === "content_filter" ? "filtered" : why === "max_output_tokens" ? "length" : "other";
  }
  let refused = false;
  for (const raw of asList(response["output"])) {
    const item = asObject(raw);
    if (isCall(asText(item?.["type"]) ?? "")) return "tool_calls";
    refused ||= asList(item?.["content"]).some((part) => asObject(part)?.["type"] === "refusal");
  }
  return refused ? "refusal" : "stop";
}

/**
 * Creates the stream, which receives the whole response in one push. A body that is not a response,
 * such as a list or a deletion, is forwarded unchanged.
 */
export function passResponse(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  let ended = false;
  const forward = (body: Buffer): void => {
    const answer =
      parseObject(body.toString("utf8")) ??
      fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
    if (answer["error"] && !Array.isArray(answer["output"])) throwParsedError(answer);
    const id = asText(answer["id"]);
    if (id !== undefined) sink.reportStart(id);
    const counted = reportUsage(answer, sink);
    // Reading a stored response that failed is a success. A new response that failed is an error.
    if (to.body["input"] !== undefined && isFailure(answer)) throwParsedError(answer);
    sink.reportContent(textBytesOf(answer["output"]));
    const settled = sink.reportFinish(reasonOf(answer));
    ended = true;
    if (settled && !counted && answer["object"] === "response" && to.body["input"] !== undefined)
      return writeJson(sink, { ...answer, model: to.model, usage: usageTo(settled) });
    if (answer["object"] !== "response") return sink.write(body);
    replaceModelName(body, to.model, (b) => sink.write(b));
  };
  return {
    isBetweenEvents: true,
    push: forward,
    end() {
      if (!ended) fail("upstream", "The provider's response was empty.", { code: "bad_answer" });
    },
    writeFault() {},
  };
}
