// Operations whose response is a list of items in one piece, each with its model.
import {
  fail,
  type Call,
  type Endpoint,
  type ModelEvent,
  type RerankRequest,
  type Json,
  type ModerationRequest,
} from "tollgate/plugin";
import { digestOf } from "./random-text.ts";
import { countTokens } from "./request-text.ts";

/**
 * Ranks documents by the number of query words that they contain. If two documents contain equally
 * many words, the shorter document is first.
 */
async function* rerank(r: RerankRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "rerank")
    fail("not_found", `Model demo/${call.model} does not support reranking. Use demo/rerank.`, {
      code: "model_not_found",
      param: "model",
    });
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  const wanted = new Set(wordsIn(r.query));
  const scores = r.documents.map((document, index) => ({
    index,
    score: near(wanted, textOf(document)),
  }));
  const best = scores.toSorted((a, b) => b.score - a.score || a.index - b.index);
  for (const [place, item] of best.slice(0, r.topN ?? best.length).entries())
    yield { type: "item", index: place, item };
  const read = r.documents.reduce<number>(
    (sum, one) => sum + countTokens(textOf(one)),
    countTokens(r.query),
  );
  yield { type: "usage", usage: { searches: Math.ceil(r.documents.length / 100), input: read } };
  yield { type: "finish", reason: "stop" };
}

const textOf = (document: RerankRequest["documents"][number]): string =>
  typeof document === "string" ? document : String(document["text"] ?? "");

const wordsIn = (text: string): readonly string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** Returns a score from 0 to 1. */
function near(wanted: ReadonlySet<string>, text: string): number {
  const words = new Set(wordsIn(text));
  let shared = 0;
  for (const word of wanted) if (words.has(word)) shared++;
  return wanted.size === 0 || words.size === 0
    ? 0
    : Math.round((shared / wanted.size - words.size * 1e-6) * 1e6) / 1e6 || 0;
}

const CATEGORIES = ["harassment", "hate", "self-harm", "sexual", "violence"] as const;

/** Flags text that contains the name of a category, such as "violence". */
async function* moderation(r: ModerationRequest, call: Call): AsyncGenerator<ModelEvent> {
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

/** These operations, in the order of the demo's endpoints and models. */
export const LISTS: readonly {
  readonly model: string;
  /** Name of the model for people. */
  readonly name: string;
  readonly endpoint: Extract<Endpoint, { operation: unknown }>;
}[] = [
  {
    model: "moderate",
    name: "Demo: flags texts that name a category",
    endpoint: {
      operation: "moderation",
      run: (request, call) => moderation(request, call),
      streaming: "never",
    },
  },
  {
    model: "rerank",
    name: "Demo: ranks documents by shared words",
    endpoint: {
      operation: "rerank",
      run: (request, call) => rerank(request, call),
      streaming: "never",
    },
  },
];
