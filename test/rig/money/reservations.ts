// Reservations against an upstream that bills the maximum: every field that some protocol or a
// compatible API documents, in every protocol's body, to every protocol. A hard budget's
// reservation is never below the bill.
import type { Json, Price, Protocol, Reserve } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini, geminiImage } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { DOCUMENTED } from "../../pipeline/privacy/foreign-fields.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { road, ROADS } from "./generous-case.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

type Fields = Record<string, Json>;

export const CHATS: { readonly [id: string]: Protocol } = {
  chat: chatCompletions() as Protocol,
  messages: messages() as Protocol,
  responses: responses() as Protocol,
};
export const TARGETS: { readonly [id: string]: Protocol } = {
  ...CHATS,
  gemini: gemini() as Protocol,
};
const PICTURES: { readonly [id: string]: Protocol } = {
  images: images() as Protocol,
  drawn: geminiImage() as Protocol,
};

const CONTEXT = 50_000;
const LONGEST = 4_096;
const priced = (times: number): Price => ({
  lines: [
    { unit: "input", usd: String(1 * times), per: 1_000_000 },
    { unit: "cache_write_1h", usd: String(2 * times), per: 1_000_000 },
    { unit: "output", usd: String(10 * times), per: 1_000_000 },
    { unit: "searches", usd: "0.01", per: 1 },
  ],
  tiers: {
    priority: [{ unit: "output", usd: String(20 * times), per: 1_000_000 }],
    flex: [{ unit: "output", usd: String(5 * times), per: 1_000_000 }],
  },
  multipliers: [{ when: { speed: "fast" }, by: "6" }],
});
const limits = { context: CONTEXT, output: LONGEST };
export const CHAT_FACTS = new Map([
  ["m", { price: priced(1), limits }],
  ["dear", { price: priced(25), limits }],
]);
const PICTURE_FACTS = new Map([
  [
    "m",
    {
      kind: "image",
      price: { lines: [{ unit: "images", usd: "0.04", per: 1 }] },
    },
  ],
]);

/** Start of each protocol's request. */
export const BASES: { readonly [id: string]: (words: Json) => Fields } = {
  chat: (words) => ({ messages: [{ role: "user", content: words }] }),
  messages: (words) => ({ messages: [{ role: "user", content: words }], max_tokens: 64 }),
  responses: (words) => ({ input: [{ role: "user", content: words }] }),
  images: () => ({ prompt: "a gate" }),
};

/** Expensive settings, under every name that they have somewhere. */
const DEAR: readonly (readonly [string, readonly Json[]])[] = [
  ...["n", "best_of", "num_return_sequences", "candidateCount", "candidate_count"].map(
    (name) => [name, [2, 128, "16"]] as const,
  ),
  ...["max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"].map(
    (name) => [name, [1, 3_000, 100_000]] as const,
  ),
  ...["generationConfig", "generation_config"].map(
    (name) =>
      [
        name,
        [
          { candidateCount: 64 },
          { candidate_count: 8, maxOutputTokens: 4_096 },
          { responseModalities: ["AUDIO"] },
        ],
      ] as const,
  ),
  ["speed", ["fast"]],
  ["service_tier", ["priority", "flex", "auto"]],
  ["serviceTier", ["priority"]],
  ["models", [["dear"], ["m", "dear"]]],
  ["fallbacks", [[{ model: "dear" }], ["dear"]]],
  ["fallback_model", ["dear"]],
  [
    "tools",
    [
      [{ type: "advisor_20260301", name: "advisor", model: "dear", max_uses: 3 }],
      [{ type: "web_search_20250305", name: "web_search", max_uses: 4 }],
      [{ type: "web_search" }],
      [{ google_search: {} }],
    ],
  ],
  ["web_search_options", [{}]],
  ["max_tool_calls", [2]],
  ["modalities", [["text", "audio"]]],
  ["reasoning_effort", ["high"]],
  ["thinking", [{ type: "enabled", budget_tokens: 1_024 }]],
  ["previous_response_id", ["resp_1"]],
  ["stream", [false]],
];

/**
 * Text with one token per byte, and other content: URLs of long content, under names that are newer
 * than the gateway.
 */
const WORDS: readonly Json[] = [
  "a b c d e f g h",
  "a1b2c3d4e5f6g7h8",
  "Hello there",
  [{ type: "text", text: "x" }],
  [{ type: "input_text", text: "x" }],
  [{ type: "image_url", image_url: { url: "https://far.test/1.png" } }],
  [{ type: "video_url", video_url: { url: "https://far.test/1.mp4" } }],
  [{ type: "image", source: { type: "url", url: "https://far.test/1.png" } }],
  [{ type: "document", source: { type: "url", url: "https://far.test/1.pdf" } }],
  [{ type: "input_file", file_url: "https://far.test/1.pdf" }],
  [{ type: "constructor", constructor: { url: "A".repeat(3_000) } }],
  [{ type: "__proto__", data: "A".repeat(3_000) }],
  [{ type: "hologram", hologram: { url: "https://far.test/1.holo" } }],
];

function body(from: string, of: Chance): Fields {
  const made: Fields = { model: "", ...BASES[from]!(of.one(WORDS)) };
  for (let i = of.below(4); i >= 0; i--) {
    const [name, values] = of.one(DEAR);
    made[name] = of.one(values);
  }
  // Fields that some protocol documents, in any body.
  if (from !== "images" && of.often(0.4)) Object.assign(made, of.one(DOCUMENTED));
  return made;
}

const object = (v: unknown): Fields =>
  typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Fields) : {};
const list = (v: unknown): readonly Json[] => (Array.isArray(v) ? v : []);

/** The largest number in any position where a backend may look for one of these names. */
function most(asked: Fields, names: readonly string[]): number | undefined {
  const places = [asked, object(asked["generationConfig"]), object(asked["generation_config"])];
  const found = places.flatMap((place) => names.map((name) => Number(place[name] ?? Number.NaN)));
  const real = found.filter((n) => n > 0);
  return real.length > 0 ? Math.max(...real) : undefined;
}

const MANY = ["n", "best_of", "num_return_sequences", "candidateCount", "candidate_count"];
const LONG = [
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "max_new_tokens",
  "maxOutputTokens",
];
/** For text, or for no part at all. A document is in its source. */
const TEXT =
  /"type":"(?!text"|input_text"|output_text"|message"|function"|custom"|enabled"|adaptive"|disabled"|ephemeral"|document"|content")/;
const HOSTED = /web_search|google_?search|advisor|web_search_options/i;

/** Bill in nano-dollars of an upstream that interprets everything as generously as possible. */
export function worst(text: string): bigint {
  const asked = JSON.parse(text) as Fields;
  const hosted = HOSTED.test(text);
  const said = JSON.stringify([asked["messages"], asked["input"], asked["contents"]]);
  const opaque = hosted || TEXT.test(said) || /fileData|previous_response_id/.test(text);
  // Only the API of a limit's name interprets it.
  const calls = asked["input"] === undefined ? undefined : most(asked, ["max_tool_calls"]);
  const uses = list(asked["tools"]).map((tool) => Number(object(tool)["max_uses"] ?? 10));
  const bounded = uses.length > 0 && asked["web_search_options"] === undefined;
  const sum = uses.reduce((a, b) => a + b, 0);
  const times = hosted ? (calls ?? (bounded ? Math.min(10, sum) : 10)) : 0;
  const read = (opaque ? CONTEXT : Math.min(CONTEXT, Buffer.byteLength(text))) * (1 + times);
  const written =
    Math.min(LONGEST, most(asked, LONG) ?? LONGEST) * Math.min(most(asked, MANY) ?? 1, 1e6);
  const tier = asked["service_tier"] ?? asked["serviceTier"];
  const fast = asked["speed"] === "fast" ? 6 : 1;
  const of = (dear: number, output: number) =>
    BigInt((read * 2_000 + output * (tier === "priority" ? 20_000 : 10_000)) * dear * fast);
  const searches = hosted ? BigInt(times) * 10_000_000n : 0n;
  const others = /"dear"/.test(text) ? of(25, Math.min(written, LONGEST)) : 0n;
  return of(1, written) + others + searches;
}

/** An image has one price. */
const worstPicture = (text: string): bigint =>
  BigInt(most(JSON.parse(text) as Fields, MANY) ?? 1) * 40_000_000n;

export async function holds(of: { requests: number; seed: number }): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  let left = 0;
  let asked = 0;
  const limit = { scope: "key", unit: "nano_usd", max: 10n ** 18n, per: "total" } as const;
  const hooks = [{ charge: () => ({ hold: "hard" as const, limits: [limit] }) }];
  for (const from of Object.keys(BASES)) {
    const drawn = from === "images";
    const targets = drawn ? PICTURES : TARGETS;
    await using up = await startBackend((_req, res) => {
      res.writeHead(400, { "content-type": "application/json" });
      res.end(JSON.stringify({ error: { message: "no", type: "invalid_request_error" } }));
    });
    const providers = Object.fromEntries(
      Object.entries(targets).map(([id, protocol]) => [
        id,
        {
          endpoints: [{ protocol, base: up.base, auth: "none" as const }],
          models: async () => [{ model: "m", kind: protocol.operationSpec.name }],
          facts: (drawn ? PICTURE_FACTS : CHAT_FACTS) as never,
        },
      ]),
    );
    await using s = await startTestServices({
      frontend: { ...CHATS, ...PICTURES }[from]!,
      providers,
      hooks,
    });
    for (let i = 0; i < of.requests / Object.keys(BASES).length; i++) {
      const into = chanced.one(Object.keys(targets));
      const sent = { ...body(from, chanced), model: `${into}/m` };
      up.asked.length = 0;
      s.journal.length = 0;
      const answer = await s.ask(sent);
      await answer.text();
      asked++;
      if (answer.status >= 500 && up.asked.length === 0)
        wrong.push(`${from} → ${into}: ${answer.status} of ${JSON.stringify(sent)}`);
      if (up.asked.length === 0) continue;
      left++;
      const reserved = s.journal.find((c) => c.do === "reserve") as Reserve;
      const bill = up.asked.reduce(
        (sum, one) => sum + (drawn ? worstPicture(one.body) : worst(one.body)),
        0n,
      );
      const take = reserved.claims[0]!.take;
      if (take < bill || reserved.holdNano! < bill)
        wrong.push(`${from} → ${into}: held ${take}, billed ${bill}: ${up.asked[0]!.body}`);
    }
  }
  const spelled = await generous(of, chanced);
  wrong.push(...spelled.wrong);
  return {
    wrong,
    counts: { requests: asked, left, spelled: spelled.asked, spelledLeft: spelled.left },
    seed: of.seed,
  };
}

/**
 * The same number of requests again for every operation, with cost fields in other names,
 * positions, and forms.
 */
async function generous({ requests }: { requests: number }, chanced: Chance) {
  const wrong: string[] = [];
  let [asked, left] = [0, 0];
  for (const way of ROADS) {
    await using one = await road(way);
    for (let i = 0; i < requests / ROADS.length; i++) {
      const found = await one.try(chanced.below(2 ** 31));
      if (found !== undefined) wrong.push(found);
    }
    asked += one.counts.asked;
    left += one.counts.left;
  }
  return { wrong, asked, left };
}

export const rig: Rig = {
  options: { requests: 10_000, seed: Date.now() % 1e6 },
  run: ({ requests, seed }) => holds({ requests: Number(requests), seed: Number(seed) }),
};
