import { setImmediate as turn } from "node:timers/promises";
import {
  fail,
  type Call,
  type EmbeddingRequest,
  type EmbeddingTask,
  type ModelEvent,
} from "tollgate/plugin";
import { createSeededRandom, digestOf } from "./random-text.ts";
import { countTokens } from "./request-text.ts";

const DEFAULT_DIMENSIONS = 256;
const MAX_DIMENSIONS = 4_096;
/** Context length of the real models that the demo imitates. */
export const MAX_INPUT_TOKENS = 8_192;
const MAX_INPUTS = 2_048;
/** Number of texts to embed before other requests get a turn. */
const INPUTS_PER_TURN = 16;

/**
 * Returns vectors of length 1. The same text and task give the same vector, and texts with common
 * words have similar vectors.
 */
export async function* embedding(r: EmbeddingRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "embed")
    fail("not_found", `Model demo/${call.model} does not support embeddings. Use demo/embed.`, {
      code: "model_not_found",
      param: "model",
    });
  const width = r.dimensions ?? DEFAULT_DIMENSIONS;
  refuse(r, width);
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  let input = 0;
  for (const [index, textOrTokens] of r.inputs.entries()) {
    if (index % INPUTS_PER_TURN === INPUTS_PER_TURN - 1) await turn();
    if (call.signal.aborted) fail("canceled", "The request was canceled.");
    const read = typeof textOrTokens === "string" ? countTokens(textOrTokens) : textOrTokens.length;
    if (read > MAX_INPUT_TOKENS)
      fail(
        "context_length",
        `Input ${index} is too long: ${read} tokens > ${MAX_INPUT_TOKENS} maximum`,
      );
    input += read;
    const words =
      typeof textOrTokens === "string"
        ? textOrTokens.toLowerCase().split(/\s+/)
        : textOrTokens.map(String);
    yield { type: "item", index, item: { values: vector(words, r.task, width) } };
  }
  yield { type: "usage", usage: { input } };
  yield { type: "finish", reason: "stop" };
}

function refuse({ inputs, dtype = "float" }: EmbeddingRequest, width: number): void {
  if (width > MAX_DIMENSIONS)
    fail("unsupported", `demo/embed supports up to ${MAX_DIMENSIONS} dimensions.`, {
      param: "dimensions",
    });
  if (dtype !== "float")
    fail("unsupported", "demo/embed supports only float embeddings.", { param: "output_dtype" });
  if (inputs.length > MAX_INPUTS)
    fail("invalid", `demo/embed accepts up to ${MAX_INPUTS} inputs per request.`, {
      param: "input",
    });
}

/** Number of vector elements that each word changes. */
const NUMBERS_PER_WORD = 16;

function vector(
  words: readonly string[],
  task: EmbeddingTask | undefined,
  width: number,
): readonly number[] {
  const numbers = Array.from<number>({ length: width }).fill(0);
  // Ensures that the vector is never zero, so that it can be scaled to length 1.
  numbers[0] = 0.01;
  for (const word of words) {
    const next = createSeededRandom("embedding", word, task ?? null);
    for (let i = 0; i < NUMBERS_PER_WORD; i++) {
      const at = Math.floor(next() * width);
      numbers[at] = numbers[at]! + next() * 2 - 1;
    }
  }
  const length = Math.hypot(...numbers);
  return numbers.map((one) => one / length);
}
