import { setImmediate as turn } from "node:timers/promises";
import {
  fail,
  type Call,
  type EmbeddingRequest,
  type EmbeddingTask,
  type ModelEvent,
} from "tollgate/plugin";
import { chance, digest } from "./chance.ts";
import { tokens } from "./tokens.ts";

const USUAL = 256;
const WIDEST = 4_096;
/** As many as the models have that it stands for. */
export const LONGEST = 8_192;
const MOST = 2_048;
/** Texts that are embedded in one go: then other requests have a turn. */
const BURST = 16;

/** A text and a task in, the same vector out, of length one. Texts that share words are near each other. */
export async function* embedding(r: EmbeddingRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "embed")
    fail("not_found", `There is no demo/${call.model} that embeds. There is demo/embed.`, {
      code: "model_not_found",
      param: "model",
    });
  const width = r.dimensions ?? USUAL;
  refuse(r, width);
  yield { type: "start", id: `demo-${digest(call.attempt).slice(0, 24)}`, model: call.model };
  let input = 0;
  for (const [index, said] of r.inputs.entries()) {
    if (index % BURST === BURST - 1) await turn();
    if (call.signal.aborted) fail("canceled", "The request was given up.");
    const read = typeof said === "string" ? tokens(said) : said.length;
    if (read > LONGEST)
      fail("context_length", `Input ${index} is too long: ${read} tokens > ${LONGEST} maximum`);
    input += read;
    const words = typeof said === "string" ? said.toLowerCase().split(/\s+/) : said.map(String);
    yield { type: "item", index, item: { values: vector(words, r.task, width) } };
  }
  yield { type: "usage", usage: { input } };
  yield { type: "finish", reason: "stop" };
}

function refuse({ inputs, dtype = "float" }: EmbeddingRequest, width: number): void {
  if (width > WIDEST)
    fail("unsupported", `demo/embed makes vectors of at most ${WIDEST} numbers.`, {
      param: "dimensions",
    });
  if (dtype !== "float")
    fail("unsupported", "demo/embed makes vectors of floats.", { param: "output_dtype" });
  if (inputs.length > MOST)
    fail("invalid", `demo/embed takes at most ${MOST} inputs at a time.`, { param: "input" });
}

/** Of how many numbers each word moves. */
const MOVED = 16;

function vector(
  words: readonly string[],
  task: EmbeddingTask | undefined,
  width: number,
): readonly number[] {
  const numbers = Array.from<number>({ length: width }).fill(0);
  // A vector of length one has a direction, whatever was said.
  numbers[0] = 0.01;
  for (const word of words) {
    const next = chance("embedding", word, task ?? null);
    for (let i = 0; i < MOVED; i++) {
      const at = Math.floor(next() * width);
      numbers[at] = numbers[at]! + next() * 2 - 1;
    }
  }
  const length = Math.hypot(...numbers);
  return numbers.map((one) => one / length);
}
