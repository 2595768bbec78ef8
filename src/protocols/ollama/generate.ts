// A text that goes on, by Ollama's own wire: lines of JSON, the last of which counts.
import { fail } from "../../model/error.ts";
import type { FinishReason, ModelEvent } from "../../model/event.ts";
import type { CompletionRequest } from "../../model/request.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type { Named } from "../../plugin/look.ts";
import type { CallContext, Decoder } from "../../plugin/protocol.ts";
import type { Survey } from "../../plugin/survey.ts";
import { onePrompt } from "../completions/index.ts";
import { throwFailure } from "../failure/failure.ts";
import { count, number, object, parsed, present, some, text } from "../json.ts";
import { look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { lines } from "../sse/index.ts";

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
export const knowsGenerate = (field: string): boolean => KNOWN.has(field);

export function generateRequest(r: CompletionRequest, of: CallContext): Body {
  return present({
    model: of.model,
    prompt: onePrompt(r, of),
    suffix: r.suffix,
    stream: of.stream,
    options: some({
      num_predict: r.maxTokens,
      stop: r.stop,
      temperature: r.sampling.temperature,
      top_p: r.sampling.topP,
      seed: r.sampling.seed,
    }),
  });
}

/** The bound stands among its options. */
export const generateSurvey = (body: Body): Survey => ({
  features: body["stream"] === true ? ["stream"] : [],
  ...money(body, look(body)),
});

const money = (body: Body, named: Named) => ({
  named,
  ...spending(body, named, { output: number(object(body["options"])?.["num_predict"]) }),
});

export const generateCap = (out: Outgoing, tokens: number): void =>
  out.set("options", { ...object(out.get("options")), num_predict: tokens });

export function generateStream(emit: (event: ModelEvent) => void): Decoder {
  let begun = false;
  let over = false;
  const decoder = lines((line) => {
    if (over || line.trim() === "") return;
    const said = answerIn(line);
    if (!begun) {
      begun = true;
      emit({ type: "start" });
      emit({ type: "open", index: 0, block: { type: "text" } });
    }
    const words = text(said["response"]) ?? "";
    if (words !== "") emit({ type: "delta", index: 0, text: words });
    if (said["done"] !== true) return;
    over = true;
    emit({ type: "close", index: 0 });
    ended(said, emit);
  });
  return {
    push: (chunk) => decoder.push(chunk),
    end() {
      decoder.end();
      if (!over) fail("upstream", "The answer ended before its finish.", { code: "truncated" });
    },
  };
}

export function generateWhole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const said = answerIn(body.toString("utf8"));
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  const words = text(said["response"]);
  if (words) emit({ type: "delta", index: 0, text: words });
  emit({ type: "close", index: 0 });
  if (said["done"] !== true)
    fail("upstream", "The answer ended before its finish.", { code: "truncated" });
  ended(said, emit);
}

function answerIn(json: string): JsonObject {
  const said = parsed(json);
  if (said?.["error"]) throwFailure(said);
  return (
    said ?? fail("upstream", "The provider's answer is not a JSON object.", { code: "bad_answer" })
  );
}

/** What was in its cache it does not count as read. */
function ended(said: JsonObject, emit: (event: ModelEvent) => void): void {
  emit({
    type: "usage",
    usage: present({
      input: count(said["prompt_eval_count"]),
      output: count(said["eval_count"]),
    }),
  });
  const reason: FinishReason = said["done_reason"] === "length" ? "length" : "stop";
  emit({ type: "finish", reason });
}
