// Providers of reranking, completions, and moderations, each with its own format and bill.
import {
  eventStreamResponse,
  jsonResponse,
  type ScriptedReply,
  type UpstreamRequest,
} from "tollgate/testing";

export const DOCUMENTS = ["By the old town", "Rain over the sea", "The harbour is in the west"];
export const SCORES = [0.4, 0.1, 0.98];

const refused = (message: string) => jsonResponse({ message }, 422);
/** The scores of these documents, unsorted. */
const scored = ({ documents }: { documents: readonly unknown[] }) =>
  documents.map((_, index) => ({ index, relevance_score: SCORES[index] ?? 0 }));

/** Reports no usage. */
export const silentRanking = (asked: UpstreamRequest) => ({
  ...jsonResponse({ results: scored(asked.json()) }),
  billedUsage: { searches: Math.ceil(asked.json().documents.length / 100) },
});

export const RANKERS: Readonly<Record<string, ScriptedReply>> = {
  "POST /cohere/v2/rerank": (asked) => {
    const body = asked.json();
    if ("return_documents" in body || "top_k" in body) return refused("unknown field");
    const searches = Math.ceil(body.documents.length / 100);
    return {
      ...jsonResponse({
        id: "c1",
        results: scored(body)
          .toSorted((a, b) => b.relevance_score - a.relevance_score)
          .slice(0, body.top_n ?? Infinity),
        meta: { api_version: { version: "2" }, billed_units: { search_units: searches } },
      }),
      billedUsage: { searches },
    };
  },
  "POST /voyage/v1/rerank": (asked) => {
    const body = asked.json();
    if ("top_n" in body) return refused("unknown field");
    return {
      ...jsonResponse({
        object: "list",
        data: scored(body),
        model: body.model,
        usage: { total_tokens: 26 },
      }),
      billedUsage: { input: 26 },
    };
  },
  // Does not sort, and counts tokens.
  "POST /vllm/v1/rerank": (asked) => ({
    ...jsonResponse({ id: "v1", results: scored(asked.json()), usage: { total_tokens: 31 } }),
    billedUsage: { input: 31 },
  }),
  "POST /silent/v1/rerank": silentRanking,
};

export const VERDICT = {
  flagged: true,
  categories: { violence: true },
  category_scores: { violence: 0.9 },
};
/** A result of Mistral, with its own categories. */
export const OTHER_VERDICT = { categories: { pii: true }, category_scores: { pii: 0.7 } };

export const moderating = (asked: UpstreamRequest) => ({
  ...jsonResponse({
    id: "m1",
    model: "x",
    results: [asked.json().input].flat().map(() => OTHER_VERDICT),
    usage: { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 },
  }),
  billedUsage: { input: 9 },
});

export const MODERATORS: Readonly<Record<string, ScriptedReply>> = {
  "POST /openai/v1/moderations": {
    ...jsonResponse({ id: "modr-1", model: "x", results: [VERDICT] }),
    billedUsage: { requests: 1 },
  },
  "POST /mistral/v1/moderations": moderating,
};

export const CONTINUATION = " time there was a fox";
const PIECES = [" time", " there was", " a fox"];
export const TOKENS = { prompt_tokens: 4, completion_tokens: 5, total_tokens: 9 };
const bill = { input: 4, output: 5 };
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

/** OpenAI's completions. */
export const completing = (asked: UpstreamRequest) => {
  const { stream, stream_options, n = 1 } = asked.json();
  const frame = { id: "cmpl-1", object: "text_completion", created: 1, model: "upstreams-own" };
  const choice = (text: string, finish_reason: string | null = null, index = 0) => ({
    text,
    index,
    logprobs: null,
    finish_reason,
  });
  if (!stream) {
    const choices = Array.from({ length: n }, (_, i) => choice(CONTINUATION, "length", i));
    return { ...jsonResponse({ ...frame, choices, usage: TOKENS }), billedUsage: bill };
  }
  return {
    ...eventStreamResponse([
      ...PIECES.map((text) => event({ ...frame, choices: [choice(text)] })),
      event({ ...frame, choices: [choice("", "length")] }),
      ...(stream_options?.include_usage ? [event({ ...frame, choices: [], usage: TOKENS })] : []),
      "data: [DONE]\n\n",
    ]),
    billedUsage: bill,
  };
};

/** Mistral's format, like a chat response. */
const fillingIn = (asked: UpstreamRequest) => {
  const chat = { id: "f1", created: 1, model: "x" };
  if (!asked.json().stream) {
    const message = { role: "assistant", content: CONTINUATION };
    const choices = [{ index: 0, message, finish_reason: "length" }];
    return {
      ...jsonResponse({ ...chat, object: "chat.completion", choices, usage: TOKENS }),
      billedUsage: bill,
    };
  }
  const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) =>
    event({
      ...chat,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason }],
      ...more,
    });
  return {
    ...eventStreamResponse([
      ...PIECES.map((content) => chunk({ content })),
      chunk({ content: "" }, "length", { usage: TOKENS }),
      "data: [DONE]\n\n",
    ]),
    billedUsage: bill,
  };
};

/** Ollama's format: JSON lines. */
const generating = (asked: UpstreamRequest) => {
  const last = { done: true, done_reason: "length", prompt_eval_count: 4, eval_count: 5 };
  if (!asked.json().stream)
    return { ...jsonResponse({ model: "m", response: CONTINUATION, ...last }), billedUsage: bill };
  const lines = [
    ...PIECES.map((response) => ({ model: "m", response, done: false })),
    { model: "m", response: "", ...last },
  ];
  return {
    headers: { "content-type": "application/x-ndjson" },
    body: lines.map((line) => `${JSON.stringify(line)}\n`),
    billedUsage: bill,
  };
};

export const COMPLETERS = {
  "POST /vllm/v1/completions": completing,
  "POST /deepseek/beta/completions": completing,
  "POST /mistral/v1/fim/completions": fillingIn,
  "POST /ollama/api/generate": generating,
} satisfies Readonly<Record<string, ScriptedReply>>;
