// Forwards a non-streaming response in passthrough mode.
import { isAscii } from "node:buffer";
import type {
  ResponseContext,
  CallContext,
  FinishReason,
  JsonObject,
  PassthroughStream,
  PassthroughSink,
  Json,
  Opt,
  Usage,
} from "../../../plugin/index.ts";
import { failTruncated } from "../../failure/parse-error.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { createResponsePassthrough, writeJson } from "../../passthrough.ts";
import { encodeKey, findValue, replaceModelName } from "../../sse/index.ts";
import { parseFinishReason } from "../constants.ts";
import type { ChatDialect } from "../dialect.ts";
import { withCost } from "../../cost-in-usage.ts";
import { faultBody } from "../server/response-common.ts";
import { createEncoder as encoder } from "../server/stream.ts";
import { usageSeen, usageTo } from "../usage.ts";
import { isErrorObject, parsed, throwFault, decodeResponse } from "./response.ts";

export function passResponse(
  sink: PassthroughSink,
  to: ResponseContext,
  dialect: ChatDialect,
): PassthroughStream {
  return createResponsePassthrough(
    sink,
    (body) => {
      const answer = parsed(isAscii(body) ? body.toString("latin1") : body.toString("utf8"));
      if (isErrorObject(answer)) throwFault(answer);
      const reason = finishReasonOf(answer);
      sink.reportStart(asText(answer["id"]) ?? "");
      const usage = usageSeen(answer, dialect);
      if (usage) sink.reportUsage(usage);
      let words = 0;
      for (const choice of asList(answer["choices"]))
        words += textBytesIn(asObject(asObject(choice)?.["message"]) ?? {});
      sink.reportContent(words);
      const settled = sink.reportFinish(reason);
      // The client receives the counts that the ledger prices. If the provider reported none, these
      // are the gateway's own counts.
      const reported = usage && asObject(answer["usage"]);
      if (settled && !reported)
        return writeJson(sink, {
          ...answer,
          model: to.model,
          usage: withCost(usageTo(settled), to),
        });
      const better = usage && correctedUsage(answer, usage.usage);
      if (to.includesCost === true && reported)
        return writeJson(sink, {
          ...answer,
          model: to.model,
          usage: withCost(better ?? reported, to),
        });
      const output = better ? withUsage(body, body.indexOf(123), better) : body;
      replaceModelName(output, to.model, (b) => sink.write(b));
    },
    faultBody,
  );
}

function finishReasonOf(answer: JsonObject): FinishReason {
  const choice = asObject(asList(answer["choices"])[0]);
  const word = asText(choice?.["finish_reason"]);
  if (!choice || !word) return failTruncated();
  const { reason } = parseFinishReason(word);
  const calls = asList(asObject(choice["message"])?.["tool_calls"]).length > 0;
  return calls && reason === "stop" ? "tool_calls" : reason;
}

/**
 * Converts a non-streaming response into a stream, if the client requested a stream but the
 * provider sent the whole response as JSON.
 */
export function responseAsStream(
  body: Buffer,
  sink: PassthroughSink,
  to: ResponseContext,
  dialect: ChatDialect,
): void {
  const asking: CallContext = {
    actionType: "generate",
    action: "generate",
    model: to.model,
    info: { model: to.model, operation: "chat" },
    stream: true,
    params: {},
    query: to.query,
    reportLoss: (field, how, code) => to.reportLoss(field, how, code),
  };
  const write = encoder((chunk) => sink.write(Buffer.from(chunk)), to);
  let counted = false;
  decodeResponse(
    body,
    (event) => {
      if (event.type === "start") sink.reportStart(event.id ?? "");
      if (event.type === "open") sink.reportContent(0);
      if (event.type === "delta") sink.reportContent(Buffer.byteLength(event.text));
      if (event.type === "usage") {
        counted = true;
        sink.reportUsage(event);
      }
      if (event.type === "finish") {
        const settled = sink.reportFinish(event.reason);
        if (settled && !counted) write.writeEvent({ type: "usage", usage: settled });
      }
      write.writeEvent(event);
    },
    asking,
    dialect,
  );
}

const CALLS = ["function", "custom", "function_call"];

/**
 * Returns the bytes of text in a delta or message. The usage of a truncated response is estimated
 * from it.
 */
export function textBytesIn(delta: JsonObject): number {
  let bytes = size(delta["content"]) + size(delta["refusal"]);
  bytes += size(delta["reasoning"]) || size(delta["reasoning_content"]);
  for (const raw of [delta, ...asList(delta["tool_calls"])])
    for (const kind of CALLS) {
      const call = asObject(asObject(raw)?.[kind]);
      bytes += size(call?.["arguments"]) + size(call?.["input"]);
    }
  return bytes;
}

/** Returns the bytes of a text, or of a list of parts, which may contain nested parts. */
function size(value: Opt<Json>): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  let bytes = 0;
  for (const raw of asList(value)) {
    const part = asObject(raw);
    bytes += size(part?.["text"]) + size(part?.["thinking"]);
  }
  return bytes;
}

/**
 * Corrects usage reports in passthrough mode. Some backends omit reasoning from the completion
 * count or caches from the prompt count. The reported counts are replaced, so that the client
 * receives the counts that are billed. Other members of the report are kept.
 */
const TOTAL_FIELDS = ["prompt_tokens", "completion_tokens", "total_tokens"] as const;

const DETAILS = ["prompt_tokens_details", "completion_tokens_details"] as const;

const USAGE = [encodeKey("usage")];

/**
 * Returns the provider's report with the gateway's counts. Returns undefined if both agree, or if
 * the report is not where clients expect it.
 */
export function correctedUsage(answer: JsonObject, usage: Usage): JsonObject | undefined {
  const raw = asObject(answer["usage"]);
  const ours = usageTo(usage);
  if (!raw || TOTAL_FIELDS.every((name) => raw[name] === ours[name])) return undefined;
  const usageReport: Record<string, JsonObject[string]> = { ...raw, ...ours };
  for (const name of DETAILS) {
    const [theirs, better] = [asObject(raw[name]), asObject(ours[name])];
    if (theirs && better) usageReport[name] = { ...theirs, ...better };
  }
  return usageReport;
}

/**
 * Returns the text with a different usage report.
 *
 * @param json Offset at which the JSON object begins.
 */
export function withUsage(b: Buffer, json: number, usage: JsonObject): Buffer {
  const at = findValue(b, USAGE, json);
  return at
    ? Buffer.concat([b.subarray(0, at.from), Buffer.from(JSON.stringify(usage)), b.subarray(at.to)])
    : b;
}
