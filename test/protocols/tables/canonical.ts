// Fields of the common form: rows of the first table of docs/reference/translation/requests.md.
import type { Block, ChatRequest, Tool, Turn } from "tollgate/plugin";
import { asked, fromAny, type Row } from "./verdicts.ts";

const f: Tool = { type: "function", name: "f", schema: { type: "object", properties: {} } };
const { turns } = asked();
const spoken: Turn = { role: "assistant", blocks: [{ type: "text", text: "x" }] };

const turn = (block: Block, role: "user" | "assistant" = "user"): Partial<ChatRequest> => ({
  turns: [{ role, blocks: [block, { type: "text", text: "y" }] }, ...turns],
});
const returned = (block: Block): Partial<ChatRequest> => ({
  turns: [
    {
      role: "assistant",
      blocks: [{ type: "call", id: "c", name: "f", tool: "function", args: "{}" }],
    },
    { role: "tool", blocks: [{ type: "result", callId: "c", blocks: [block], isError: false }] },
  ],
});
const out = (more: ChatRequest["output"]): Partial<ChatRequest> => ({
  output: { maxTokens: 4000, ...more },
});

const failed = (isError: boolean): Partial<ChatRequest> => ({
  turns: returned({ type: "text", text: "x" }).turns!.map((t) => ({
    ...t,
    blocks: t.blocks.map((b) => (b.type === "result" ? { ...b, isError } : b)),
  })),
});

const ROWS: readonly Row<Partial<ChatRequest>>[] = [
  ["no output limit", { output: {} }],
  ["temperature", { sampling: { temperature: 0.5 } }],
  ["temperature above 1", { sampling: { temperature: 1.5 } }],
  ["top_p", { sampling: { topP: 0.5 } }],
  ["top_k", { sampling: { topK: 5 } }],
  ["stop", out({ stop: ["END"] })],
  ["presence_penalty", { sampling: { presence: 1 } }],
  ["frequency_penalty", { sampling: { frequency: 1 } }],
  ["seed", { sampling: { seed: 1 } }],
  ["logit_bias", { sampling: { logitBias: { "1": 1 } } }],
  ["logprobs", { sampling: { logprobs: 1 } }],
  ["n > 1", { sampling: { n: 2 } }],
  ["service tier: default", { tier: "default" }],
  ["service tier: other", { tier: "flex" }],
  ["user", { user: "u1" }],
  ["user: e-mail address or phone number", { user: "jo@example.com" }],
  ["metadata", { metadata: { a: "b" } }],
  ["store", { state: { store: true } }],
  ["stored conversations", { state: { previousId: "x" } }],
  ["background", { state: { background: true } }],
  ["prompt cache key", { cache: { key: "k" } }],
  ["cache breakpoint", turn({ type: "text", text: "x", cache: { mode: "explicit" } })],
  ["verbosity", out({ verbosity: "low" })],
  ["audio output", out({ modalities: ["audio"] })],
  ["JSON object", out({ format: { type: "json" } })],
  ["JSON schema", out({ format: { type: "schema", schema: {}, name: "x" } })],
  ["JSON schema, description", out({ format: { type: "schema", schema: {}, description: "x" } })],
  ["JSON schema, strict: false", out({ format: { type: "schema", schema: {}, strict: false } })],
  ["system, developer at the start", { instructions: [{ type: "text", text: "x" }] }],
  [
    "system later in the conversation",
    {
      turns: [{ role: "system", blocks: [{ type: "text", text: "s" }] }, ...turns],
    },
  ],
  ["image by URL or bytes", turn({ type: "image", media: { url: "https://e/a.png" } })],
  [
    "image of an unsupported type",
    turn({ type: "image", media: { mime: "image/bmp", base64: "AA==" } }),
  ],
  ["image detail", turn({ type: "image", media: { url: "https://e/a.png" }, detail: "high" })],
  [
    "image in an assistant message",
    turn({ type: "image", media: { url: "https://e" } }, "assistant"),
  ],
  ["image in a tool result", returned({ type: "image", media: { url: "https://e/a.png" } })],
  [
    "PDF by URL or bytes",
    turn({ type: "document", media: { mime: "application/pdf", base64: "AA==" } }),
  ],
  ["file ID of another provider", turn({ type: "document", media: { fileId: "x", origin: "o" } })],
  ["audio", turn({ type: "audio", media: { base64: "AA==" } })],
  ["video", turn({ type: "video", media: { url: "https://e" } })],
  ["refusal in the history", turn({ type: "refusal", text: "No." }, "assistant")],
  [
    "citation of another protocol",
    turn({ type: "text", text: "x", citations: [{ type: "url_citation" }] }, "assistant"),
  ],
  ["function tool, strict", { tools: [{ ...f, strict: true }] }],
  ["custom tool", { tools: [{ type: "custom", name: "c" }] }],
  ["web search", { tools: [{ type: "hosted", name: "web_search", origin: "o", raw: {} }] }],
  ["other hosted tools", { tools: [{ type: "hosted", name: "file_search", origin: "o" }] }],
  ["tool choice: required", { tools: [f], toolChoice: "required" }],
  ["tool choice: one", { tools: [f], toolChoice: { names: ["f"], must: true } }],
  [
    "tool choice: some",
    { tools: [f, { ...f, name: "g" }], toolChoice: { names: ["f", "g"], must: true } },
  ],
  ["parallel tool calls off", { tools: [f], parallelToolCalls: false }],
  ["reasoning off", { reasoning: { mode: "off" } }],
  ["reasoning effort", { reasoning: { mode: "effort", effort: "high" } }],
  ["reasoning effort: minimal", { reasoning: { mode: "effort", effort: "minimal" } }],
  ["reasoning budget", { reasoning: { mode: "budget", budget: 2000 } }],
  [
    "reasoning of another provider",
    turn(
      { type: "reasoning", text: "x", proof: { origin: "o", kind: "k", data: "d" } },
      "assistant",
    ),
  ],
  ["hosted tools in the history", turn({ type: "opaque", origin: "o", raw: {} }, "assistant")],
  [
    "prefill: assistant message last",
    { turns: [...turns, { role: "assistant", blocks: [{ type: "text", text: "x" }] }] },
    { turns: [...turns, { role: "user", blocks: [{ type: "text", text: "x" }] }] },
  ],
  ["name of a message", { turns: [{ ...turns[0]!, name: "n" }] }],
  [
    "phase of a message",
    { turns: [...turns, { ...spoken, phase: "commentary" }, ...turns] },
    { turns: [...turns, spoken, ...turns] },
  ],
  ["tool result: error", failed(true), failed(false)],
  ["audio in a tool result", returned({ type: "audio", media: { base64: "AA==" } })],
  [
    "document: context, citations",
    turn({ type: "document", media: { mime: "application/pdf", base64: "AA==" }, cite: true }),
    turn({ type: "document", media: { mime: "application/pdf", base64: "AA==" } }),
  ],
  ["content of another protocol", turn({ type: "opaque", origin: "o", raw: {} })],
  ["output limit below 16", { output: { maxTokens: 5 } }],
  [
    "several instructions",
    {
      instructions: [
        { type: "text", text: "x" },
        { type: "text", text: "y" },
      ],
    },
  ],
  ["field of another protocol", { ext: { o: { field: 1 } } }],
];

export const table = (): string => fromAny(ROWS);
