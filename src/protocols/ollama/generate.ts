// Text completion in Ollama's own API. The response is a stream of JSON lines, and the last line
// has the counts.
import { fail } from "../../model/error.ts";
import type { FinishReason, ModelEvent } from "../../model/event.ts";
import type { CompletionRequest } from "../../model/request.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type { References, RequestFacts } from "../../plugin/references.ts";
import type { CallContext, Decoder } from "../../plugin/protocol.ts";
import { singlePrompt } from "../completions/index.ts";
import { throwParsedError } from "../failure/parse-error.ts";
import {
  asCount,
  asNumber,
  asObject,
  parseObject,
  omitUndefined,
  omitUndefinedOrNothing,
  asText,
} from "../json-values.ts";
import { findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { createLineDecoder } from "../sse/index.ts";

const KNOWN: ReadonlySet<string> = new Set([
  "model",
  "prompt",
  "suffix",
  "stream",
  "options",
  "system",
  "template",
  "context",
  "raw",
  "images",
  "format",
  "think",
]);
export const knowsGenerateField = (field: string): boolean => KNOWN.has(field);

export function encodeGenerateRequest(r: CompletionRequest, of: CallContext): Body {
  return omitUndefined({
    model: of.model,
    prompt: singlePrompt(r, of),
    suffix: r.suffix,
    stream: of.stream,
    options: omitUndefinedOrNothing({
      num_predict: r.maxTokens,
      stop: r.stop,
      temperature: r.sampling.temperature,
      top_p: r.sampling.topP,
      seed: r.sampling.seed,
    }),
  });
}

/** Analyzes a generate request. The output limit is inside `options`. */
export const analyzeGenerate = (body: Body): RequestFacts => ({
  features: body["stream"] === true ? ["stream"] : [],
  ...generateCost(body, findReferences(body)),
});

const generateCost = (body: Body, named: References) => ({
  references: named,
  ...analyzeCost(body, named, { maxOutput: asNumber(asObject(body["options"])?.["num_predict"]) }),
});

export const capGenerateOutput = (out: Outgoing, tokens: number): void =>
  out.set("options", { ...asObject(out.get("options")), num_predict: tokens });

export function createGenerateDecoder(emit: (event: ModelEvent) => void): Decoder {
  let begun = false;
  let over = false;
  const decoder = createLineDecoder((line) => {
    if (over || line.trim() === "") return;
    const parsedLine = parseResponseObject(line);
    if (!begun) {
      begun = true;
      emit({ type: "start" });
      emit({ type: "open", index: 0, block: { type: "text" } });
    }
    const words = asText(parsedLine["response"]) ?? "";
    if (words !== "") emit({ type: "delta", index: 0, text: words });
    if (parsedLine["done"] !== true) return;
    over = true;
    emit({ type: "close", index: 0 });
    emitEnd(parsedLine, emit);
  });
  return {
    push: (chunk) => decoder.push(chunk),
    end() {
      decoder.end();
      if (!over)
        fail("upstream", "The response ended before it was complete.", { code: "truncated" });
    },
  };
}

export function decodeGenerateResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const response = parseResponseObject(body.toString("utf8"));
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  const words = asText(response["response"]);
  if (words) emit({ type: "delta", index: 0, text: words });
  emit({ type: "close", index: 0 });
  if (response["done"] !== true)
    fail("upstream", "The response ended before it was complete.", { code: "truncated" });
  emitEnd(response, emit);
}

function parseResponseObject(json: string): JsonObject {
  const parsedJson = parseObject(json);
  if (parsedJson?.["error"]) throwParsedError(parsedJson);
  return (
    parsedJson ??
    fail("upstream", "The provider's response is not a JSON object.", { code: "bad_answer" })
  );
}

/** Ollama does not count cached input as read. */
function emitEnd(response: JsonObject, emit: (event: ModelEvent) => void): void {
  emit({
    type: "usage",
    usage: omitUndefined({
      input: asCount(response["prompt_eval_count"]),
      output: asCount(response["eval_count"]),
    }),
  });
  const reason: FinishReason = response["done_reason"] === "length" ? "length" : "stop";
  emit({ type: "finish", reason });
}
