// What becomes of each field on its way, told by the codecs themselves: the tables of the README are made here.
import { faultOf } from "../../../src/model/error.ts";
import type { Block, ChatRequest } from "../../../src/model/request.ts";
import type { Body } from "../../../src/model/values.ts";
import type { ClientHalf } from "../../../src/plugin/protocol.ts";
import { asking } from "../../../src/testing/asking.ts";
import { sending } from "../../../src/testing/index.ts";
import { chats } from "../codecs.ts";
import { asked, f } from "./asked.ts";
import { server } from "./recorded.ts";

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
    if (fault?.kind !== "unsupported") throw error;
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

const turn = (block: Block, role: "user" | "assistant" = "user"): Partial<ChatRequest> => ({
  turns: [{ role, blocks: [block, { type: "text", text: "y" }] }, ...asked().turns],
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

/** Canonical, as any other protocol hands it over. */
const CANONICAL: readonly (readonly [string, Partial<ChatRequest>])[] = [
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
  ["service tier: any other", { tier: "flex" }],
  ["user", { user: "u1" }],
  ["user, an address or a number", { user: "jo@example.com" }],
  ["metadata", { metadata: { a: "b" } }],
  ["store", { state: { store: true } }],
  ["stored conversations", { state: { previousId: "x" } }],
  ["background", { state: { background: true } }],
  ["prompt cache key", { cache: { key: "k" } }],
  ["cache mark", turn({ type: "text", text: "x", cache: { mode: "explicit" } })],
  ["verbosity", out({ verbosity: "low" })],
  ["audio output", out({ modalities: ["audio"] })],
  ["JSON object", out({ format: { type: "json" } })],
  ["JSON schema", out({ format: { type: "schema", schema: {}, name: "x" } })],
  ["JSON schema, description", out({ format: { type: "schema", schema: {}, description: "x" } })],
  ["JSON schema, strict: false", out({ format: { type: "schema", schema: {}, strict: false } })],
  ["leading system, developer", { instructions: [{ type: "text", text: "x" }] }],
  [
    "system inside the conversation",
    {
      turns: [{ role: "system", blocks: [{ type: "text", text: "s" }] }, ...asked().turns],
    },
  ],
  ["image by address or bytes", turn({ type: "image", media: { url: "https://e/a.png" } })],
  ["image of another type", turn({ type: "image", media: { mime: "image/bmp", base64: "AA==" } })],
  ["image detail", turn({ type: "image", media: { url: "https://e/a.png" }, detail: "high" })],
  ["image by the assistant", turn({ type: "image", media: { url: "https://e" } }, "assistant")],
  ["image a tool returned", returned({ type: "image", media: { url: "https://e/a.png" } })],
  [
    "PDF by address or bytes",
    turn({ type: "document", media: { mime: "application/pdf", base64: "AA==" } }),
  ],
  ["file id of another provider", turn({ type: "document", media: { fileId: "x", origin: "o" } })],
  ["audio", turn({ type: "audio", media: { base64: "AA==" } })],
  ["video", turn({ type: "video", media: { url: "https://e" } })],
  ["refusal in the history", turn({ type: "refusal", text: "No." }, "assistant")],
  [
    "citation of another kind",
    turn({ type: "text", text: "x", citations: [{ type: "url_citation" }] }, "assistant"),
  ],
  ["function tool, strict", { tools: [{ ...f, strict: true }] }],
  ["freeform tool", { tools: [{ type: "custom", name: "c" }] }],
  ["web search", { tools: [{ type: "hosted", name: "web_search", origin: "o", raw: {} }] }],
  ["other hosted tools", { tools: [{ type: "hosted", name: "file_search", origin: "o" }] }],
  ["tool choice: required", { tools: [f], toolChoice: "required" }],
  ["tool choice: one", { tools: [f], toolChoice: { names: ["f"], must: true } }],
  [
    "tool choice: some",
    { tools: [f, { ...f, name: "g" }], toolChoice: { names: ["f", "g"], must: true } },
  ],
  ["one call at a time", { tools: [f], parallel: false }],
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
  ["what only another protocol knows", { ext: { o: { field: 1 } } }],
];

/** The same request without what is in question: marks off the texts, other blocks left out. */
const neutral = (more: Partial<ChatRequest>): ChatRequest =>
  asked({
    output: { maxTokens: 4000 },
    ...(more.turns && {
      turns: more.turns.map((t) => ({
        ...t,
        role: t.role === "system" ? ("user" as const) : t.role,
        blocks: t.blocks.flatMap((b): Block[] => {
          if (b.type === "text") return [{ type: "text", text: b.text }];
          if (b.type === "result") return [{ ...b, blocks: [] }];
          return b.type === "call" ? [b] : [];
        }),
      })),
    }),
  });

const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;

export function toMessages(): string {
  return [
    row(["from any protocol", "to messages"]),
    row(["---", "---"]),
    ...CANONICAL.map(([name, more]) =>
      row([
        name,
        verdict("messages", asked({ output: { maxTokens: 4000 }, ...more }), neutral(more)),
      ]),
    ),
  ].join("\n");
}

const said = (content: object): Body =>
  ({
    messages: [{ role: "user", content: [content, { type: "text", text: "?" }] }],
  }) as unknown as Body;
const done = (content: object): Body =>
  ({
    messages: [
      { role: "assistant", content: [content, { type: "text", text: "?" }] },
      { role: "user", content: "?" },
    ],
  }) as unknown as Body;
const result = (more: object): Body =>
  ({
    messages: [
      { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", ...more }] },
    ],
  }) as unknown as Body;
const image = { type: "image", source: { type: "url", url: "https://e/a.png" } };
const document = (source: object, more = {}) => said({ type: "document", source, ...more });
const pdf = { type: "base64", media_type: "application/pdf", data: "AA==" };

/** As a client of messages writes it. */
const OWN: readonly (readonly [string, Body])[] = [
  ["temperature", { temperature: 0.5 }],
  ["top_k", { top_k: 5 }],
  ["stop_sequences", { stop_sequences: ["END"] }],
  ["system", { system: "x" }],
  [
    "system, marked for caching",
    { system: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }] },
  ],
  [
    "role system",
    {
      messages: [
        { role: "system", content: "x" },
        { role: "user", content: "?" },
      ],
    },
  ],
  ["thinking: adaptive", { thinking: { type: "adaptive" } }],
  ["thinking: enabled", { thinking: { type: "enabled", budget_tokens: 2000 } }],
  ["thinking: between_tools", { thinking: { type: "between_tools" } }],
  ["thinking: disabled", { thinking: { type: "disabled" } }],
  ["output_config.effort", { thinking: { type: "adaptive" }, output_config: { effort: "high" } }],
  ["output_config.effort without thinking", { output_config: { effort: "high" } }],
  ["output_config.format", { output_config: { format: { type: "json_schema", schema: {} } } }],
  ["metadata.user_id", { metadata: { user_id: "u1" } }],
  ["service_tier", { service_tier: "standard_only" }],
  ["cache_control", { cache_control: { type: "ephemeral" } }],
  ["speed, container, context_management, …", { speed: "fast" }],
  ["fields nobody knows", { brand_new: 1 }],
  ["tools", { tools: [{ name: "f", input_schema: {} }] }],
  [
    "tools: defer_loading, input_examples",
    { tools: [{ name: "f", input_schema: {}, defer_loading: true }] },
  ],
  ["tools: web_search", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
  ["tools: typed by the protocol", { tools: [{ type: "bash_20250124", name: "bash" }] }],
  [
    "disable_parallel_tool_use",
    {
      tools: [{ name: "f", input_schema: {} }],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    },
  ],
  ["image", said(image)],
  ["image, file id", said({ type: "image", source: { type: "file", file_id: "x" } })],
  ["document, PDF", document(pdf)],
  ["document by address", document({ type: "url", url: "https://e/a.pdf" })],
  ["document, text", document({ type: "text", media_type: "text/plain", data: "x" })],
  ["document: citations", document(pdf, { citations: { enabled: true } })],
  [
    "search_result",
    said({
      type: "search_result",
      source: "s",
      title: "t",
      content: [{ type: "text", text: "x" }],
    }),
  ],
  ["tool_result", result({ content: "x" })],
  ["tool_result: is_error", result({ content: "x", is_error: true })],
  ["tool_result: image", result({ content: [image] })],
  ["thinking, signed by Anthropic", done({ type: "thinking", thinking: "x", signature: "s" })],
  [
    "server_tool_use and its results",
    done({ type: "server_tool_use", id: "s", name: "web_search", input: {} }),
  ],
];

/** The same without what is in question. */
const bare = (body: Body): Body =>
  "messages" in body
    ? ({
        messages: (body["messages"] as readonly { role: string; content: any }[]).map(
          ({ role, content }) => ({
            role: role === "system" ? "user" : role,
            content: Array.isArray(content) ? content.flatMap(bareBlock) : content,
          }),
        ),
      } as unknown as Body)
    : {};
const bareBlock = (b: any): object[] => {
  if (b.type === "tool_result")
    return [{ type: b.type, tool_use_id: "c", content: b.is_error ? b.content : [] }];
  return b.type === "text" || b.type === "tool_use" ? [b] : [];
};

export function fromMessages(): string {
  const targets = Object.keys(chats).filter((id) => id !== "messages");
  const base = { model: "m", max_tokens: 4000, messages: [{ role: "user", content: "?" }] };
  const decode = (more: Body) =>
    server.request({ ...base, ...more } as Body, "generate") as ChatRequest;
  return [
    row(["from messages", ...targets.map((t) => `to ${t}`)]),
    row(["---", ...targets.map(() => "---")]),
    ...OWN.map(([name, more]) =>
      row([name, ...targets.map((t) => verdict(t, decode(more), decode(bare(more))))]),
    ),
  ].join("\n");
}
