import {
  fail,
  type Call,
  type Json,
  type ModelEvent,
  type ModerationRequest,
} from "tollgate/plugin";
import { digestOf } from "./seeded-random.ts";

const CATEGORIES = ["harassment", "hate", "self-harm", "sexual", "violence"] as const;

/** Flags text that contains the name of a category, such as "violence". */
export async function* moderation(r: ModerationRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "moderate")
    fail("not_found", `Model demo/${call.model} does not support moderation. Use demo/moderate.`, {
      code: "model_not_found",
      param: "model",
    });
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  for (const [index, text] of textsIn(r.input).entries())
    yield { type: "item", index, item: { raw: verdict(text) } };
  yield { type: "usage", usage: { requests: 1 } };
  yield { type: "finish", reason: "stop" };
}

/**
 * Returns the texts to check. The parts of one message are checked together, and separate texts
 * individually.
 */
function textsIn(input: Json): readonly string[] {
  if (typeof input === "string") return [input];
  const all = input as readonly Json[];
  if (all.every((one) => typeof one === "string")) return all;
  return [all.map((one) => String((one as { text?: string }).text ?? "")).join("\n")];
}

function verdict(text: string) {
  const lowerCase = text.toLowerCase();
  const found = CATEGORIES.map((name) => [name, lowerCase.includes(name)] as const);
  return {
    flagged: found.some(([, is]) => is),
    categories: Object.fromEntries(found),
    category_scores: Object.fromEntries(found.map(([name, is]) => [name, is ? 0.99 : 0.01])),
    category_applied_input_types: Object.fromEntries(CATEGORIES.map((name) => [name, ["text"]])),
  };
}
