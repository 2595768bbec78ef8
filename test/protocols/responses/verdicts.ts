// What becomes of each field on its way, told by the codecs themselves: the tables of the README are made here.
import {
  faultOf,
  type Block,
  type Body,
  type ChatRequest,
  type ClientHalf,
  type JsonObject,
} from "tollgate/plugin";
import { asking, sending } from "tollgate/testing";
import { chats } from "../codecs.ts";

const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const { server } = chats["responses"]!;
const decode = (body: JsonObject) => server!.request(body as Body, "generate") as ChatRequest;

interface Sent {
  text: string;
  losses: readonly { how: string; code: string | undefined; field: string }[];
}

function sent(target: string, request: ChatRequest): Sent | { refused: string } {
  const of = asking({ model: "m" });
  try {
    const { body } = sending(chats[target]!.client as ClientHalf<"chat">, request, of);
    return { text: JSON.stringify(body), losses: of.losses };
  } catch (error) {
    const fault = faultOf(error);
    if (!fault) throw error;
    return { refused: fault.code ?? fault.kind };
  }
}

/** In one word, and the code where there is one: what differs from the same request without it. */
function verdict(target: string, request: ChatRequest, plain: ChatRequest): string {
  const now = sent(target, request);
  if ("refused" in now) return `refused (${now.refused})`;
  const before = sent(target, plain) as Sent;
  const lost = now.losses.filter(
    (l) => !before.losses.some((b) => b.field === l.field && b.code === l.code),
  );
  const words = lost.map(({ how, code }) =>
    code === undefined || code === how ? how : `${how} (${code})`,
  );
  if (words.length > 0) return [...new Set(words)].join(", ");
  return now.text === before.text ? "left out" : "carried";
}

const base = { model: "m", max_output_tokens: 4000 };
const hi = { role: "user", content: "?" };
const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
const part = (content: object) => ({
  input: [{ role: "user", content: [content, { type: "input_text", text: "?" }] }],
});
const returned = (output: unknown) => ({
  input: [hi, call, { type: "function_call_output", call_id: "c", output }],
});
const before = (...items: object[]) => ({ input: [hi, ...items, hi] });
const tool = (...tools: object[]) => ({
  tools: [{ type: "function", name: "f", strict: false }, ...tools],
});

/** As a client of responses writes it, and what it is compared with. */
const OWN: readonly (readonly [string, object, object?])[] = [
  ["instructions", { instructions: "x" }],
  ["role system or developer, first", { input: [{ role: "developer", content: "x" }, hi] }],
  [
    "role system or developer, later",
    { input: [hi, { role: "developer", content: "x" }, hi] },
    { input: [hi, hi] },
  ],
  ["temperature", { temperature: 0.5 }],
  ["top_p", { top_p: 0.5 }],
  ["top_logprobs", { top_logprobs: 2 }],
  ["text.format: json_object", { text: { format: { type: "json_object" } } }],
  [
    "text.format: json_schema",
    { text: { format: { type: "json_schema", name: "n", schema: {} } } },
  ],
  ["text.verbosity", { text: { verbosity: "low" } }],
  ["reasoning.effort", { reasoning: { effort: "high" } }],
  ["reasoning.effort: none", { reasoning: { effort: "none" } }],
  [
    "reasoning.summary",
    { reasoning: { effort: "high", summary: "auto" } },
    { reasoning: { effort: "high" } },
  ],
  ["metadata", { metadata: { a: "b" } }],
  ["safety_identifier, user", { safety_identifier: "u1" }],
  ["service_tier", { service_tier: "flex" }],
  ["prompt_cache_key", { prompt_cache_key: "k" }],
  ["store: true", { store: true }],
  ["previous_response_id, conversation", { previous_response_id: "resp_1" }],
  ["background: true", { background: true }],
  ["prompt", { prompt: { id: "pmpt_1" } }],
  ["context_management, moderation, …", { context_management: [{}] }],
  ["truncation: auto, max_tool_calls", { truncation: "auto" }],
  [
    "include, stream_options, client_metadata",
    { client_metadata: { a: "b" }, include: ["reasoning.encrypted_content"] },
  ],
  ["fields nobody knows", { brand_new: 1 }],
  ["parallel_tool_calls: false", { ...tool(), parallel_tool_calls: false }, tool()],
  ["tools: function, strict", { tools: [{ type: "function", name: "f", strict: true }] }, tool()],
  ["tools: custom", tool({ type: "custom", name: "c" }), tool()],
  [
    "tools: custom, grammar",
    tool({
      type: "custom",
      name: "c",
      format: { type: "grammar", syntax: "lark", definition: "x" },
    }),
    tool(),
  ],
  [
    "tools: namespace",
    tool({ type: "namespace", name: "n", tools: [{ type: "function", name: "g" }] }),
    tool(),
  ],
  ["tools: web_search", tool({ type: "web_search" }), tool()],
  [
    "tools: web_search without the open web",
    tool({ type: "web_search", external_web_access: false }),
    tool(),
  ],
  ["tools: tool_search", tool({ type: "tool_search" }), tool()],
  [
    "tools: other hosted ones",
    tool({ type: "code_interpreter", container: { type: "auto" } }),
    tool(),
  ],
  [
    "tool_choice: allowed_tools",
    {
      ...tool({ type: "function", name: "g" }),
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "function", name: "f" }],
      },
    },
    tool({ type: "function", name: "g" }),
  ],
  [
    "input_image",
    part({ type: "input_image", image_url: "https://e/a.png" }),
    part({ type: "input_text", text: "" }),
  ],
  [
    "input_image: detail",
    part({ type: "input_image", image_url: "https://e/a.png", detail: "high" }),
    part({ type: "input_image", image_url: "https://e/a.png" }),
  ],
  [
    "input_file, bytes",
    part({ type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" }),
    part({ type: "input_text", text: "" }),
  ],
  [
    "input_file, address",
    part({ type: "input_file", file_url: "https://e/a.pdf" }),
    part({ type: "input_text", text: "" }),
  ],
  ["file_id", part({ type: "input_file", file_id: "file_1" })],
  [
    "input_audio",
    part({ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }),
    part({ type: "input_text", text: "" }),
  ],
  ["parts newer than us", part({ type: "input_new" })],
  [
    "outputs with images",
    returned([{ type: "input_image", image_url: "https://e/a.png" }]),
    returned(""),
  ],
  [
    "outputs with audio",
    returned([{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }]),
    returned(""),
  ],
  [
    "custom_tool_call and its output",
    before(
      { type: "custom_tool_call", call_id: "c", name: "c", input: "x" },
      { type: "custom_tool_call_output", call_id: "c", output: "y" },
    ),
    before(),
  ],
  [
    "phase",
    before({ role: "assistant", content: "x", phase: "commentary" }),
    before({ role: "assistant", content: "x" }),
  ],
  [
    "reasoning, encrypted by an upstream",
    before(
      { type: "reasoning", summary: [], encrypted_content: "e" },
      { role: "assistant", content: "x" },
    ),
    before({ role: "assistant", content: "x" }),
  ],
  [
    "items of hosted tools, and newer ones",
    before({ type: "web_search_call", id: "ws_1" }),
    before(),
  ],
  ["item_reference that nobody resolved", before({ type: "item_reference", id: "msg_1" })],
];

/** As after a hook that has touched all of the conversation. */
const anew = (r: ChatRequest): ChatRequest => ({
  ...r,
  instructions: structuredClone(r.instructions),
  turns: structuredClone(r.turns),
  tools: structuredClone(r.tools),
});

export function fromResponses(): string {
  const targets = Object.keys(chats);
  const read = (more: object) => decode({ ...base, input: [hi], ...more } as JsonObject);
  return [
    row(["from responses", ...targets.map((t) => `to ${t}`)]),
    row(["---", ...targets.map(() => "---")]),
    ...OWN.map(([name, more, plain = {}]) =>
      row([name, ...targets.map((t) => verdict(t, anew(read(more)), anew(read(plain))))]),
    ),
  ].join("\n");
}

const asked = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  kind: "chat",
  model: "m",
  stream: false,
  instructions: [],
  turns: [{ role: "user", blocks: [{ type: "text", text: "?" }] }],
  tools: [],
  output: {},
  sampling: {},
  reasoning: { mode: "auto" },
  state: {},
  rest: {},
  ext: {},
  ...more,
});
const turn = (block: Block, role: "user" | "assistant" = "user"): Partial<ChatRequest> => ({
  turns: [{ role, blocks: [block] }, ...asked().turns],
});
const result = (block: Block | undefined, isError = false): Partial<ChatRequest> => ({
  turns: [
    {
      role: "assistant",
      blocks: [{ type: "call", id: "c", name: "f", tool: "function", args: "{}" }],
    },
    {
      role: "tool",
      blocks: [{ type: "result", callId: "c", blocks: block ? [block] : [], isError }],
    },
  ],
});
const words: Block = { type: "text", text: "x" };

/** Canonical, as any other protocol hands it over. */
const CANONICAL: readonly (readonly [string, Partial<ChatRequest>, Partial<ChatRequest>?])[] = [
  ["instructions, one text", { instructions: [words] }],
  ["instructions, several", { instructions: [words, words] }],
  [
    "system inside the conversation",
    { turns: [{ role: "system", blocks: [words] }, ...asked().turns] },
  ],
  ["output limit", { output: { maxTokens: 4000 } }],
  ["output limit below 16", { output: { maxTokens: 5 } }],
  ["temperature, top_p", { sampling: { temperature: 0.5 } }],
  ["top_k, seed, logit_bias, penalties", { sampling: { topK: 5 } }],
  ["logprobs", { sampling: { logprobs: 1 } }],
  ["n > 1", { sampling: { n: 2 } }],
  ["stop sequences", { output: { stop: ["END"] } }],
  ["audio output", { output: { modalities: ["audio"] } }],
  ["verbosity", { output: { verbosity: "low" } }],
  ["JSON object, JSON schema", { output: { format: { type: "schema", schema: {} } } }],
  ["user", { user: "u" }],
  ["metadata, service tier, prompt cache key", { metadata: { a: "b" } }],
  ["store", { state: { store: true } }],
  ["cache mark", turn({ ...words, cache: { type: "ephemeral" } }), turn(words)],
  ["name of a turn", { turns: [{ ...asked().turns[0]!, name: "n" }] }],
  [
    "prefill: the assistant speaks last",
    { turns: [...asked().turns, { role: "assistant", blocks: [words] }] },
  ],
  ["reasoning effort", { reasoning: { mode: "effort", effort: "high" } }],
  ["reasoning budget", { reasoning: { mode: "budget", budget: 2000 } }],
  ["reasoning off", { reasoning: { mode: "off" } }],
  [
    "reasoning of another provider",
    {
      turns: [
        {
          role: "assistant",
          blocks: [
            { type: "reasoning", text: "x", proof: { origin: "o", kind: "k", data: "d" } },
            words,
          ],
        },
        ...asked().turns,
      ],
    },
    turn(words, "assistant"),
  ],
  ["image by address or bytes", turn({ type: "image", media: { url: "https://e/a.png" } })],
  ["image by the assistant", turn({ type: "image", media: { base64: "AA==" } }, "assistant")],
  ["document by address or bytes", turn({ type: "document", media: { url: "https://e/a.pdf" } })],
  [
    "document: context, citations",
    turn({ type: "document", media: { url: "https://e/a.pdf" }, cite: true }),
    turn({ type: "document", media: { url: "https://e/a.pdf" } }),
  ],
  ["file id of another provider", turn({ type: "document", media: { fileId: "x", origin: "o" } })],
  ["audio, WAV or MP3", turn({ type: "audio", media: { mime: "audio/wav", base64: "AA==" } })],
  ["video", turn({ type: "video", media: { url: "https://e" } })],
  ["refusal in the history", turn({ type: "refusal", text: "No." }, "assistant")],
  [
    "citations of another kind",
    turn({ ...words, citations: [{ type: "char_location" }] }, "assistant"),
    turn(words, "assistant"),
  ],
  ["content that only another protocol knows", turn({ type: "opaque", origin: "o", raw: {} })],
  ["hosted tools in the history", turn({ type: "opaque", origin: "o", raw: {} }, "assistant")],
  [
    "image a tool returned",
    result({ type: "image", media: { url: "https://e/a.png" } }),
    result(undefined),
  ],
  [
    "audio a tool returned",
    result({ type: "audio", media: { base64: "AA==" } }),
    result(undefined),
  ],
  ["result that is an error", result(words, true), result(words)],
  ["function tool, freeform tool", { tools: [{ type: "custom", name: "c" }] }],
  ["web search", { tools: [{ type: "hosted", name: "web_search", origin: "o", raw: {} }] }],
  [
    "web search: max_uses, blocked_domains",
    { tools: [{ type: "hosted", name: "web_search", origin: "o", raw: { max_uses: 1 } }] },
    { tools: [{ type: "hosted", name: "web_search", origin: "o", raw: {} }] },
  ],
  ["other hosted tools", { tools: [{ type: "hosted", name: "bash", origin: "o" }] }],
  ["what only another protocol knows", { ext: { o: { field: 1 } } }],
];

export function toResponses(): string {
  return [
    row(["from any protocol", "to responses"]),
    row(["---", "---"]),
    ...CANONICAL.map(([name, more, plain = {}]) =>
      row([name, verdict("responses", asked(more), asked(plain))]),
    ),
  ].join("\n");
}
