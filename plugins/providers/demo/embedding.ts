import { setImmediate as turn } from "node:timers/promises";
import {
  fail,
  type Call,
  type EmbeddingRequest,
  type EmbeddingTask,
  type ModelEvent,
} from "tollgate/plugin";
import { createSeededRandom, digestOf } from "./seeded-random.ts";
import { countTokens } from "./tokens.ts";

const DEFAULT_DIMENSIONS = 256;
const MAX_DIMENSIONS = 4_096;
/** As many as the models have that it stands for. */
export const MAX_INPUT_TOKENS = 8_192;
const MAX_INPUTS = 2_048;
/** Texts that are embedded in one go: then other requests have a turn. */
const INPUTS_PER_TURN = 16;

/** A text and a task in, the same vector out, of length one. Texts that share words are near each other. */
export async function* embedding(r: EmbeddingRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "embed")
    fail("not_found", `There is no demo/${call.model} that embeds. There is demo/embed.`, {
      code: "model_not_found",
      param: "model",
    });
  const width = r.dimensions ?? DEFAULT_DIMENSIONS;
  refuse(r, width);
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  let input = 0;
  for (const [index, said] of r.inputs.entries()) {
    if (index % INPUTS_PER_TURN === INPUTS_PER_TURN - 1) await turn();
    if (call.signal.aborted) fail("canceled", "The request was given up.");
    const read = typeof said === "string" ? countTokens(said) : said.length;
    if (read > MAX_INPUT_TOKENS)
      fail(
        "context_length",
        `Input ${index} is too long: ${read} tokens > ${MAX_INPUT_TOKENS} maximum`,
      );
    input += read;
    const words = typeof said === "string" ? said.toLowerCase().split(/\s+/) : said.map(String);
    yield { type: "item", index, item: { values: vector(words, r.task, width) } };
  }
  yield { type: "usage", usage: { input } };
  yield { type: "finish", reason: "stop" };
}

function refuse({ inputs, dtype = "float" }: EmbeddingRequest, width: number): void {
  if (width > MAX_DIMENSIONS)
    fail("unsupported", `demo/embed makes vectors of at most ${MAX_DIMENSIONS} numbers.`, {
      param: "dimensions",
    });
  if (dtype !== "float")
    fail("unsupported", "demo/embed makes vectors of floats.", { param: "output_dtype" });
  if (inputs.length > MAX_INPUTS)
    fail("invalid", `demo/embed takes at most ${MAX_INPUTS} inputs at a time.`, { param: "input" });
}

/** Of how many numbers each word moves. */
const NUMBERS_PER_WORD = 16;

function vector(
  words: readonly string[],
  task: EmbeddingTask | undefined,
  width: number,
): readonly number[] {
  const numbers = Array.from<number>({ length: width }).fill(0);
  // A vector of length one has a direction, whatever was said.
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
