// Responses with content in any place: text and calls, and in addition signatures, citations, log
// probabilities, images, audio, and hosted tools, wherever the grammar allows them.
import * as fc from "fast-check";
import type { Json, ModelEvent, OpenBlock, Proof } from "tollgate/plugin";
import { answers, type AnswerShape } from "./arbitrary.ts";

const SIGNATURES: readonly Proof[] = [
  { origin: "gemini", kind: "part", data: "CiQBjz1rX4u8Wq9z", model: "gemini-3.5-flash" },
  { origin: "gemini", kind: "after", data: "CiQBjz1rX4u8Wq9z", model: "gemini-3.5-flash" },
  { origin: "messages", kind: "signature", data: "ErUBCkYIBxgC" },
  { origin: "responses", kind: "encrypted", data: "gAAAAAB", itemId: "rs_1" },
];
const signature = (own: string, data: Json): Proof => ({
  origin: "chat-completions",
  kind: own,
  data: JSON.stringify(data),
});
const ON_CALLS_AND_TEXT: readonly Proof[] = [
  ...SIGNATURES,
  signature("extra_content", { google: { thought_signature: "CiQBjz1rX4u8Wq9z" } }),
  signature("extra_content", { vendor: { seal: 1 } }),
];
const ON_REASONING: readonly Proof[] = [
  ...SIGNATURES,
  { origin: "messages", kind: "redacted", data: "EmwKAhgB" },
  signature("reasoning_details", [
    { type: "reasoning.text", text: "so", signature: "s", index: 0 },
  ]),
];

const url = "https://example.com/a";
const CITATIONS: readonly Json[] = [
  { type: "url_citation", url, title: "A", start_index: 0, end_index: 2 },
  { type: "url_citation", url },
  {
    type: "url_citation",
    url_citation: { url, title: "A", start_index: 0, end_index: 2 },
  },
  {
    type: "web_search_result_location",
    url,
    title: "A",
    cited_text: "so it is",
    encrypted_index: "EpsB",
  },
  {
    type: "char_location",
    cited_text: "so it is",
    document_index: 0,
    document_title: null,
    file_id: null,
    start_char_index: 0,
    end_char_index: 8,
  },
];

const LIKELIHOODS: readonly (readonly Json[])[] = [
  [{ token: "so", logprob: -0.5, bytes: [115, 111], top_logprobs: [] }],
  [
    {
      token: "so",
      logprob: -0.5,
      bytes: null,
      top_logprobs: [{ token: "it", logprob: -1.5, bytes: null }],
    },
  ],
];

/** Content next to text and calls, block by block. */
const BESIDE: readonly (readonly [OpenBlock, readonly Inside[]])[] = [
  [{ type: "image" }, [{ type: "media", media: { mime: "image/png", base64: "iVBORw0KGgo=" } }]],
  [{ type: "image" }, [{ type: "media", media: { url: "https://example.com/a.png" } }]],
  [{ type: "audio" }, [{ type: "media", media: { mime: "audio/wav", base64: "UklGRg==" } }]],
  ...[
    [
      "messages",
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "so" } },
    ],
    [
      "messages",
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [
          {
            type: "web_search_result",
            url,
            title: "A",
            encrypted_content: "EqgE",
            page_age: null,
          },
        ],
      },
    ],
    [
      "responses",
      {
        type: "web_search_call",
        id: "ws_1",
        status: "completed",
        action: { type: "search", query: "so", sources: [] },
      },
    ],
    ["gemini", { executableCode: { language: "PYTHON", code: "print(1)" } }],
  ].map(
    ([origin, raw]) =>
      [{ type: "opaque", origin: origin as string, raw: raw as Json }, []] as const,
  ),
];

type Inside = { type: "media"; media: Extract<ModelEvent, { type: "media" }>["media"] };

/** The addition of one random draw. */
interface Dice {
  readonly what: "proof" | "cite" | "logprobs" | "block";
  readonly at: number;
  readonly which: number;
}

const dice: fc.Arbitrary<Dice> = fc.record({
  what: fc.constantFrom("proof", "cite", "logprobs", "block"),
  at: fc.nat(10_000),
  which: fc.nat(1000),
});

export function anyAnswers(shape: AnswerShape = {}): fc.Arbitrary<ModelEvent[]> {
  const plain = answers({
    interleaved: true,
    refusals: true,
    kinds: ["text", "reasoning", "call", "custom"],
    ...shape,
  });
  return fc
    .tuple(plain, fc.array(dice, { maxLength: 8 }))
    .map(([events, rolled]) => rolled.reduce(thrown, events));
}

function thrown(events: ModelEvent[], { what, at, which }: Dice, n: number): ModelEvent[] {
  const pick = <T>(list: readonly T[]): T => list[which % list.length]!;
  if (what === "block") {
    const [shape, inside] = pick(BESIDE);
    const index = 1000 + n;
    // All IDs are unique.
    const block = JSON.parse(JSON.stringify(shape).replace(/_1"/g, `_${index}"`)) as OpenBlock;
    // Between the start and the counts.
    const place = 1 + (at % (events.length - 2));
    return events.toSpliced(
      place,
      0,
      { type: "open", index, block },
      ...inside.map((e) => ({ ...e, index })),
      { type: "close", index },
    );
  }
  const found = opened(events, what);
  if (found.length === 0) return events;
  const { index, block, from, to } = found[which % found.length]!;
  if (what === "logprobs")
    return events.map((e) =>
      e.type === "delta" && e.index === index ? { ...e, logprobs: pick(LIKELIHOODS) } : e,
    );
  const place = from + 1 + (at % (to - from));
  const signs = block.type === "reasoning" ? ON_REASONING : ON_CALLS_AND_TEXT;
  return events.toSpliced(
    place,
    0,
    what === "cite"
      ? { type: "cite", index, citation: pick(CITATIONS) }
      : { type: "proof", index, proof: pick(signs) },
  );
}

interface Span {
  readonly index: number;
  readonly block: OpenBlock;
  /** Where it opens, and where it closes. */
  readonly from: number;
  readonly to: number;
}

/**
 * Blocks that accept one: a citation or log probabilities on text, and one signature on any content
 * of the model.
 */
function opened(events: readonly ModelEvent[], what: Dice["what"]): Span[] {
  return events.flatMap((e, from) => {
    if (e.type !== "open") return [];
    const { index, block } = e;
    const kinds = what === "proof" ? ["text", "reasoning", "call"] : ["text"];
    if (!kinds.includes(block.type)) return [];
    const own = (type: ModelEvent["type"]) =>
      events.findIndex((other) => other.type === type && "index" in other && other.index === index);
    if (what === "proof" && own("proof") >= 0) return [];
    return [{ index, block, from, to: own("close") }];
  });
}
