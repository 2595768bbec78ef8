// Sends a planned response word by word within the limits of the request, and counts its usage.
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import {
  fail,
  type Call,
  type ChatRequest,
  type FinishReason,
  type ModelEvent,
  type OpenBlock,
  type CompletionRequest,
} from "tollgate/plugin";
import { digestOf, lorem } from "./random-text.ts";
import { throwSimulatedFailure, planResponse, type ResponsePlan } from "./response-plan.ts";
import { countInputTokens, countTokens, truncateToTokens, splitWords } from "./request-text.ts";

export const CONTEXT = 200_000;
/** Number of words to send before other requests get a turn. */
const WORDS_PER_TURN = 100;

export async function* chat(
  r: ChatRequest,
  call: Call,
  paceMs: number,
): AsyncGenerator<ModelEvent> {
  const input = countInputTokens(r);
  if (input > CONTEXT)
    fail("context_length", `prompt is too long: ${input} tokens > ${CONTEXT} maximum`);
  const planned = planResponse(call.model, call.provider, r);
  if (planned.failure?.afterWords === 0) throwSimulatedFailure(planned.failure);
  const spoken = new ResponseBudget(r.output.maxTokens ?? Infinity);
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  for (const part of parts(planned, r)) {
    let pieces = splitWords(spoken.take(part.counted));
    if (part.hidden) continue;
    if (planned.failure) pieces = pieces.slice(0, planned.failure.afterWords);
    // A block that is cut off before its first word is omitted.
    if (pieces.length === 0 && spoken.full && part.counted !== "") break;
    const index = spoken.blocks++;
    yield { type: "open", index, block: part.block };
    if (part.block.type === "call") pieces = afterName(pieces, part.block.name);
    for (const [i, piece] of pieces.entries()) {
      if (planned.isPaced) await pause(paceMs, call.signal);
      else if (i % WORDS_PER_TURN === WORDS_PER_TURN - 1) await turn();
      yield { type: "delta", index, text: piece };
    }
    if (planned.failure) throwSimulatedFailure(planned.failure);
    yield { type: "close", index };
  }
  const { output, reasoning } = spoken.counts(planned);
  yield { type: "usage", usage: { input, cache_read: 0, output, reasoning } };
  yield { type: "finish", ...spoken.end(planned, r) };
}

interface Part {
  block: OpenBlock;
  /** All text of the block for counting, including the name of a tool call. */
  counted: string;
  hidden?: boolean;
}

function* parts({ reasoning, hidden, text, call }: ResponsePlan, r: ChatRequest): Generator<Part> {
  if (reasoning !== undefined)
    yield { block: { type: "reasoning" }, counted: reasoning, hidden: hidden ?? false };
  if (text !== undefined)
    yield { block: { type: "text" }, counted: cutAtStopSequence(text, r).text };
  if (call) {
    const { args, ...block } = call;
    yield { block: { type: "call", ...block }, counted: `${call.name} ${args}` };
  }
}

/** Returns only the arguments, because the name was sent when the block was opened. */
function afterName(pieces: readonly string[], name: string): readonly string[] {
  const args = pieces.join("").slice(name.length + 1);
  return splitWords(args);
}

class ResponseBudget {
  blocks = 0;
  full = false;
  #left: number;
  #takenTexts: string[] = [];

  constructor(most: number) {
    this.#left = most;
  }

  /** Returns as much of the text as fits into the budget. */
  take(text: string): string {
    const fitting = countTokens(text) > this.#left ? truncateToTokens(text, this.#left) : text;
    this.full ||= fitting !== text;
    this.#left -= countTokens(fitting);
    this.#takenTexts.push(fitting);
    return fitting;
  }

  counts({ reasoning }: ResponsePlan): { output: number; reasoning: number } {
    const counts = this.#takenTexts.map(countTokens);
    return {
      output: counts.reduce((sum, n) => sum + n, 0),
      reasoning: reasoning === undefined ? 0 : (counts[0] ?? 0),
    };
  }

  end(planned: ResponsePlan, r: ChatRequest): { reason: FinishReason; sequence?: string } {
    if (this.full) return { reason: "length" };
    if (planned.call) return { reason: "tool_calls" };
    const { sequence } = cutAtStopSequence(planned.text ?? "", r);
    return sequence === undefined ? { reason: "stop" } : { reason: "stop_sequence", sequence };
  }
}

/** Cuts the text at the first stop sequence, which is not included. */
function cutAtStopSequence(
  text: string,
  { output }: ChatRequest,
): { text: string; sequence?: string } {
  let found: { at: number; sequence: string } | undefined;
  for (const sequence of output.stop ?? []) {
    const at = sequence === "" ? -1 : text.indexOf(sequence);
    if (at >= 0 && (!found || at < found.at)) found = { at, sequence };
  }
  return found ? { text: text.slice(0, found.at), sequence: found.sequence } : { text };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (cause) {
    fail("canceled", "The request was canceled.", { cause });
  }
}

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
