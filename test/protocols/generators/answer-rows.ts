// Responses with one additional item, each next to the same one without it.

export type Row = readonly [name: string, more: object, plain: object];

const rows =
  <P>(answer: (more: P) => object, plain: P) =>
  (name: string, more: P, without: P = plain): Row => [name, answer(more), answer(without)];

// ── chat completions ──

interface Choice {
  message?: object;
  choice?: object;
  usage?: object;
  top?: object;
}
const chat = rows<Choice>(
  ({ message, choice, usage, top }) => ({
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "x", ...message },
        finish_reason: "stop",
        ...choice,
      },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, ...usage },
    ...top,
  }),
  {},
);
const called = (call: object) => ({
  message: { tool_calls: [{ id: "c", ...call }] },
  choice: { finish_reason: "tool_calls" },
});
const PNG = "data:image/png;base64,iVBORw0KGgo=";

export const inChat: readonly Row[] = [
  chat("reasoning_content", { message: { reasoning_content: "r" } }),
  chat("reasoning_details", {
    message: { reasoning_details: [{ type: "reasoning.encrypted", data: "e" }] },
  }),
  chat("refusal", { message: { refusal: "No." } }),
  chat("tool_calls", called({ type: "function", function: { name: "f", arguments: "{}" } })),
  chat("tool_calls: custom", called({ type: "custom", custom: { name: "f", input: "x" } })),
  chat("annotations", {
    message: {
      annotations: [
        {
          type: "url_citation",
          url_citation: { url: "https://e", title: "t", start_index: 0, end_index: 1 },
        },
      ],
    },
  }),
  chat("logprobs", {
    choice: {
      logprobs: { content: [{ token: "x", logprob: -1, bytes: [120], top_logprobs: [] }] },
    },
  }),
  chat("images", { message: { images: [{ type: "image_url", image_url: { url: PNG } }] } }),
  chat("audio", {
    message: { audio: { id: "a", data: "AA==", transcript: "x", expires_at: 1 } },
  }),
  chat("finish_reason: length", { choice: { finish_reason: "length" } }),
  chat("finish_reason: content_filter", { choice: { finish_reason: "content_filter" } }),
  chat("unknown finish_reason", { choice: { finish_reason: "new" } }),
  chat("cache token counts", { usage: { prompt_tokens_details: { cached_tokens: 4 } } }),
  chat("reasoning token counts", { usage: { completion_tokens_details: { reasoning_tokens: 4 } } }),
  chat("service_tier, system_fingerprint, …", {
    top: { service_tier: "flex", system_fingerprint: "fp" },
  }),
  chat("unknown fields of the response", { top: { new: 1 } }),
  chat("unknown fields of a choice", { choice: { new: 1 } }),
  chat("unknown fields of the message", { message: { new: 1 } }),
];

// ── messages ──

interface Message {
  content?: readonly object[];
  usage?: object;
  top?: object;
}
const text = { type: "text", text: "x", citations: null };
const message = rows<Message>(
  ({ content = [], usage, top }) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: content.some((block) => "type" in block && block.type === "text")
      ? content
      : [...content, text],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5, ...usage },
    ...top,
  }),
  {},
);
const cites = (citation: object) => ({ content: [{ ...text, citations: [citation] }] });
const search = [
  { type: "server_tool_use", id: "s", name: "web_search", input: {} },
  { type: "web_search_tool_result", tool_use_id: "s", content: [] },
];

export const inMessages: readonly Row[] = [
  message("thinking, signed", {
    content: [{ type: "thinking", thinking: "r", signature: "s" }],
  }),
  message("redacted_thinking", { content: [{ type: "redacted_thinking", data: "d" }] }),
  message("tool_use", {
    content: [{ type: "tool_use", id: "c", name: "f", input: {} }],
    top: { stop_reason: "tool_use" },
  }),
  message(
    "document citations",
    cites({
      type: "char_location",
      cited_text: "x",
      document_index: 0,
      start_char_index: 0,
      end_char_index: 1,
    }),
  ),
  message(
    "web citations",
    cites({
      type: "web_search_result_location",
      url: "https://e",
      title: "t",
      cited_text: "x",
      encrypted_index: "e",
    }),
  ),
  message("server_tool_use and results", { content: search }),
  message("unknown blocks", { content: [{ type: "new_block", new: 1 }] }),
  message("unknown fields of a text block", { content: [{ ...text, new: 1 }] }),
  message("unknown fields of the response", { top: { new: 1 } }),
  message("stop_sequence", { top: { stop_reason: "stop_sequence", stop_sequence: "END" } }),
  message("stop_reason: refusal", {
    top: { stop_reason: "refusal", stop_details: { type: "refusal", category: "cyber" } },
  }),
  message("stop_reason: pause_turn", { top: { stop_reason: "pause_turn" } }),
  message("unknown stop_reason", { top: { stop_reason: "new" } }),
  message("cache token counts", {
    usage: { cache_read_input_tokens: 4, cache_creation_input_tokens: 2 },
  }),
  message("thinking token counts", { usage: { output_tokens_details: { thinking_tokens: 4 } } }),
  message("service_tier, container, context_management, …", {
    usage: { service_tier: "batch" },
    top: { container: { id: "c" }, context_management: { applied_edits: [] } },
  }),
];

// ── responses ──

interface Response {
  output?: readonly object[];
  part?: object;
  item?: object;
  usage?: object;
  top?: object;
}
const response = rows<Response>(
  ({ output = [], part, item, usage, top }) => ({
    id: "resp_1",
    object: "response",
    status: "completed",
    model: "m",
    output: [
      ...output,
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "x", annotations: [], ...part }],
        ...item,
      },
    ],
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15, ...usage },
    ...top,
  }),
  {},
);
const ITEM = { id: "i", status: "completed" };

export const inResponses: readonly Row[] = [
  response("reasoning, encrypted", {
    output: [
      {
        ...ITEM,
        type: "reasoning",
        summary: [{ type: "summary_text", text: "r" }],
        encrypted_content: "e",
      },
    ],
  }),
  response("refusal", { part: { type: "refusal", refusal: "No." } }),
  response("function_call", {
    output: [{ ...ITEM, type: "function_call", call_id: "c", name: "f", arguments: "{}" }],
  }),
  response("custom_tool_call", {
    output: [{ ...ITEM, type: "custom_tool_call", call_id: "c", name: "f", input: "x" }],
  }),
  response("annotations", {
    part: {
      annotations: [
        { type: "url_citation", url: "https://e", title: "t", start_index: 0, end_index: 1 },
      ],
    },
  }),
  response("logprobs", {
    part: { logprobs: [{ token: "x", logprob: -1, bytes: [120], top_logprobs: [] }] },
  }),
  response("image_generation_call", {
    output: [{ ...ITEM, type: "image_generation_call", result: "iVBORw0KGgo=" }],
  }),
  response("items of hosted tools, unknown items", {
    output: [{ ...ITEM, type: "web_search_call", action: { type: "search", query: "q" } }],
  }),
  response("phase", { item: { phase: "commentary" } }),
  response("status: incomplete", {
    top: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
  }),
  response("cache token counts", { usage: { input_tokens_details: { cached_tokens: 4 } } }),
  response("reasoning token counts", { usage: { output_tokens_details: { reasoning_tokens: 4 } } }),
  response("service_tier, metadata, …", { top: { service_tier: "flex", metadata: { a: "b" } } }),
  response("unknown fields of the response", { top: { new: 1 } }),
  response("unknown fields of an item", { item: { new: 1 } }),
  response("unknown fields of a content part", { part: { new: 1 } }),
];

// ── gemini ──

interface Candidate {
  parts?: readonly object[];
  candidate?: object;
  usage?: object;
  top?: object;
}
const candidate = rows<Candidate>(
  ({ parts = [], candidate: of, usage, top }) => ({
    responseId: "r1",
    modelVersion: "m",
    candidates: [
      {
        index: 0,
        content: { role: "model", parts: [...parts, { text: "x" }] },
        finishReason: "STOP",
        ...of,
      },
    ],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15, ...usage },
    ...top,
  }),
  {},
);

export const inGemini: readonly Row[] = [
  candidate("thought", { parts: [{ text: "r", thought: true }] }),
  candidate(
    "thoughtSignature on a call",
    { parts: [{ functionCall: { id: "c", name: "f", args: {} }, thoughtSignature: "cw==" }] },
    { parts: [{ functionCall: { id: "c", name: "f", args: {} } }] },
  ),
  candidate("functionCall", { parts: [{ functionCall: { id: "c", name: "f", args: {} } }] }),
  candidate("inlineData: image", {
    parts: [{ inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }],
  }),
  candidate("executableCode and results", {
    parts: [{ executableCode: { language: "PYTHON", code: "1" } }],
  }),
  candidate("groundingMetadata", {
    candidate: {
      groundingMetadata: {
        groundingChunks: [{ web: { uri: "https://e", title: "t" } }],
        groundingSupports: [
          { segment: { startIndex: 0, endIndex: 1, text: "x" }, groundingChunkIndices: [0] },
        ],
      },
    },
  }),
  candidate("logprobsResult", {
    candidate: {
      logprobsResult: {
        chosenCandidates: [{ token: "x", logProbability: -1 }],
        topCandidates: [{ candidates: [] }],
      },
    },
  }),
  candidate("finishReason: MAX_TOKENS", { candidate: { finishReason: "MAX_TOKENS" } }),
  candidate("finishReason: SAFETY", { candidate: { finishReason: "SAFETY" } }),
  candidate("unknown finishReason", { candidate: { finishReason: "NEW" } }),
  candidate("cache token counts", { usage: { cachedContentTokenCount: 4 } }),
  candidate("thought token counts", { usage: { thoughtsTokenCount: 4 } }),
  candidate("safetyRatings, avgLogprobs, …", {
    candidate: { safetyRatings: [], avgLogprobs: -1 },
  }),
  candidate("unknown content parts", { parts: [{ newPart: { a: 1 } }] }),
  candidate("unknown fields", { top: { newMember: 1 } }),
];
