import { setImmediate as turn } from "node:timers/promises";
import { fail, type Call, type CompletionRequest, type ModelEvent } from "tollgate/plugin";
import { digestOf } from "./seeded-random.ts";
import { lorem } from "./lorem.ts";
import { countTokens, truncateToTokens, splitWords } from "./tokens.ts";

const USUAL = 16;
const MOST = 4_096;

/** Returns generated words. The prompt, suffix, and seed determine the text. */
export async function* completion(r: CompletionRequest, call: Call): AsyncGenerator<ModelEvent> {
  const [prompt] = r.prompts;
  if (call.model !== "complete")
    fail("not_found", `Model demo/${call.model} does not support completions. Use demo/complete.`, {
      code: "model_not_found",
      param: "model",
    });
  if (r.prompts.length !== 1 || typeof prompt !== "string")
    return fail("unsupported", "demo/complete accepts only one text.", { param: "prompt" });
  const most = Math.min(r.maxTokens ?? USUAL, MOST);
  const completionText = truncateToTokens(
    ` ${lorem(most, r.sampling.seed ?? null, prompt, r.suffix ?? null)}`,
    most,
  );
  const input = countTokens(prompt) + countTokens(r.suffix ?? "");
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  yield { type: "open", index: 0, block: { type: "text" } };
  for (const [i, text] of splitWords(completionText).entries()) {
    if (i % 100 === 99) await turn();
    if (call.signal.aborted) fail("canceled", "The request was canceled.");
    yield { type: "delta", index: 0, text };
  }
  yield { type: "close", index: 0 };
  yield { type: "usage", usage: { input, output: countTokens(completionText) } };
  yield { type: "finish", reason: "length" };
}
