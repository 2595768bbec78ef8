// Every operation under a hard budget, with an honest provider that interprets generously: its
// requests, models, and bill.
import type { Json, Protocol } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { completions } from "tollgate/protocols/completions";
import { embeddings } from "tollgate/protocols/embeddings";
import { gemini, geminiImage } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { moderations } from "tollgate/protocols/moderations";
import { ollamaCompletions } from "tollgate/protocols/ollama";
import { rerank, voyageRerank } from "tollgate/protocols/rerank";
import { responses } from "tollgate/protocols/responses";
import { speech } from "tollgate/protocols/speech";
import {
  answersOf,
  FORMS,
  LONG,
  MANY,
  nano,
  pixelsOf,
  PLACES,
  ROUNDS,
  runsOf,
  searchesOf,
  SPELLINGS,
  textOf,
  writtenOf,
  type Fields,
} from "./generous-provider.ts";
import type { Chance } from "../rig.ts";

export interface Operation {
  readonly from: { readonly [id: string]: Protocol };
  readonly into: { readonly [id: string]: Protocol };
  /** By the model's name. */
  readonly facts: ReadonlyMap<string, object>;
  base(of: Chance, from: string): Fields;
  /** Fields of this operation that may raise its cost or lower its reservation. */
  readonly own: readonly (readonly [string, readonly Json[]])[];
  bill(asked: Fields, api: string, model: string): bigint;
}

const as = (protocol: unknown) => protocol as Protocol;
const million = (usd: number) => ({ usd: String(usd), per: 1_000_000 }) as const;
const CONTEXT = 50_000;
/** The catalog's values, and the model's actual maximum without a limit. */
const LISTED = 4_096;
const WRITES = 60_000;
const DRAWS = 4_096 ** 2;
const limits = { context: CONTEXT, output: LISTED };
const chatPrice = (times: number) => ({
  lines: [
    { unit: "input", ...million(times) },
    { unit: "output", ...million(10 * times) },
    { unit: "searches", usd: "0.01", per: 1 },
  ],
});

const HEX = "0123456789abcdef".repeat(60);
const said = (of: Chance) => of.one(["Hi", HEX, "中文é😀".repeat(30), "a b c d e f"]);

const chat: Operation = {
  from: { chat: as(chatCompletions()), messages: as(messages()), responses: as(responses()) },
  into: {
    chat: as(chatCompletions()),
    messages: as(messages()),
    responses: as(responses()),
    gemini: as(gemini()),
  },
  facts: new Map([
    ["m", { price: chatPrice(1), limits }],
    ["dear", { price: chatPrice(25), limits }],
  ]),
  base: (of, from) =>
    from === "responses"
      ? { input: said(of) }
      : {
          messages: [{ role: "user", content: said(of) }],
          ...(from === "messages" && { max_tokens: 64 }),
        },
  own: [
    ["max_tool_calls", [1, 2, "1", [1], 0, -1]],
    [
      "tools",
      [1, undefined, "1", [1], 0].flatMap((uses) => {
        const max = uses === undefined ? {} : { max_uses: uses as Json };
        return [
          [{ type: "web_search", ...max }],
          [{ type: "web_search_20250305", name: "web_search", ...max }],
          [{ type: "advisor_20260301", name: "advisor", model: "dear", ...max }],
        ] as unknown as Json[];
      }),
    ],
    ["fallbacks", [[{ model: "dear", max_uses: 1 }]]],
  ],
  bill(asked, api) {
    const runs = runsOf(asked, api);
    const read = (runs > 0 ? CONTEXT : Math.min(CONTEXT, textOf(asked))) * (1 + runs);
    const all = writtenOf(asked, WRITES) * answersOf(asked);
    const others = JSON.stringify(asked).includes('"dear"') ? Math.max(1, runs) : 0;
    const dear = others * (CONTEXT * 25_000 + LISTED * 250_000);
    return nano(read * 1_000 + all * 10_000 + runs * 1e7 + (runs > 0 ? dear : 0));
  },
};

const completion: Operation = {
  from: { completions: as(completions()) },
  into: { completions: as(completions()), ollama: as(ollamaCompletions()) },
  facts: new Map([["m", { operation: "completion", price: chatPrice(1), limits }]]),
  base: (of) => ({ prompt: said(of) }),
  own: [["echo", [true, false]]],
  bill(asked) {
    const again = asked["echo"] === true ? textOf(asked["prompt"]) : 0;
    const all = (writtenOf(asked, WRITES) + again) * answersOf(asked);
    return nano(Math.min(CONTEXT, textOf(asked)) * 1_000 + all * 10_000);
  },
};

const drawn: Operation = {
  from: { images: as(images()) },
  into: { images: as(images()), gemini: as(geminiImage()) },
  facts: new Map<string, object>([
    ["pieces", { operation: "image", price: { lines: [{ unit: "images", usd: "0.04", per: 1 }] } }],
    [
      "area",
      { operation: "image", price: { lines: [{ unit: "megapixels", usd: "0.01", per: 1 }] } },
    ],
    [
      "tokens",
      {
        operation: "image",
        price: {
          lines: [
            { unit: "input", ...million(5) },
            { unit: "image_out", ...million(30) },
          ],
        },
      },
    ],
    [
      "known",
      {
        operation: "image",
        image: { sides: { min: 64, max: 4_096 } },
        price: {
          lines: [
            { unit: "input", ...million(5) },
            { unit: "image_out", ...million(30) },
          ],
        },
      },
    ],
  ]),
  base: (of) => ({ prompt: said(of) }),
  own: [
    ["size", ["1024x1024", "1024x1024", "4096x4096", "4096×4096", "4096*4096", "4K", "auto"]],
    ["width", [4_096, "4096", [4_096], "4e3"]],
    ["height", [4_096, "4096", "0x1000"]],
    ["resolution", ["4K", "2k"]],
    ["image_size", ["4K", { width: 4_096, height: 4_096 }]],
    ["megapixels", [16, "16"]],
    ["upscale", [4]],
    ["sequential_image_generation", ["auto", "disabled"]],
    [
      "sequential_image_generation_options",
      [{ max_images: 12 }, { max_images: "12" }, { max_images: [12] }, { maxImages: 12 }],
    ],
  ],
  bill(asked, _api, model) {
    const n = answersOf(asked);
    if (model === "pieces") return nano(n * 4e7);
    const pixels = pixelsOf(asked, DRAWS);
    if (model === "area") return nano((n * pixels * 1e7) / 1e6);
    return nano(textOf(asked) * 5_000 + n * Math.ceil(pixels / 252) * 30_000);
  },
};

const vectors: Operation = {
  from: { embeddings: as(embeddings()) },
  into: { embeddings: as(embeddings()) },
  facts: new Map([
    [
      "m",
      {
        operation: "embedding",
        price: { lines: [{ unit: "input", ...million(1) }] },
        limits: { context: 512 },
      },
    ],
  ]),
  base: (of) => ({
    input: of.one<Json>([said(of), Array.from({ length: 20 }, () => HEX), [1, 2, 3]]),
  }),
  own: [
    ["image", ["https://far.test/1.png"]],
    ["inputs", [[{ content: [{ type: "image_url", image_url: "https://far.test/1.png" }] }]]],
  ],
  bill(asked) {
    const brought = asked["image"] || asked["inputs"] ? 16_000 : 0;
    const ids = Array.isArray(asked["input"]) && typeof asked["input"][0] === "number" ? 3 : 0;
    return nano((textOf(asked["input"]) + ids + brought) * 1_000);
  },
};

const ranking: Operation = {
  from: { rerank: as(rerank()) },
  into: { rerank: as(rerank()), voyage: as(voyageRerank()) },
  facts: new Map<string, object>([
    [
      "searches",
      { operation: "rerank", price: { lines: [{ unit: "searches", usd: "0.002", per: 1 }] } },
    ],
    [
      "tokens",
      {
        operation: "rerank",
        price: { lines: [{ unit: "input", ...million(1) }] },
        limits: { context: 512 },
      },
    ],
  ]),
  base: (of) => ({
    query: of.one(["Hi", HEX.slice(0, 200), HEX]),
    documents: Array.from({ length: 1 + of.below(120) }, () =>
      HEX.slice(0, of.below(HEX.length)).padEnd(1, "a"),
    ),
  }),
  own: [["max_tokens_per_doc", [100_000]]],
  bill(asked, _api, model) {
    const documents = asked["documents"] as readonly Json[];
    if (model === "searches") return nano(searchesOf(asked) * 2e6);
    return nano((documents.length * textOf(asked["query"]) + textOf(documents as Json)) * 1_000);
  },
};

const judged: Operation = {
  from: { moderations: as(moderations()) },
  into: { moderations: as(moderations()) },
  facts: new Map([
    ["m", { operation: "moderation", price: { lines: [{ unit: "input", ...million(1) }] } }],
  ]),
  base: (of) => ({ input: of.one<Json>([said(of), [HEX, HEX]]) }),
  own: [],
  bill: (asked) => nano(textOf(asked["input"]) * 1_000),
};

const spoken: Operation = {
  from: { speech: as(speech()) },
  into: { speech: as(speech()) },
  facts: new Map<string, object>([
    [
      "characters",
      { operation: "speech", price: { lines: [{ unit: "characters", usd: "0.000015", per: 1 }] } },
    ],
    ...(["tokens", "capped"] as const).map(
      (name) =>
        [
          name,
          {
            operation: "speech",
            price: {
              lines: [
                { unit: "input", ...million(0.6) },
                { unit: "audio_out", ...million(12) },
              ],
            },
            ...(name === "capped" && { limits: { output: 2_000 } }),
          },
        ] as const,
    ),
  ]),
  base: (of) => ({ input: said(of), voice: "alloy" }),
  own: [
    ["instructions", ["Say it a hundred times, and slowly."]],
    ["speed", [0.25, "0.25"]],
    ["text", [HEX]],
  ],
  bill(asked, _api, model) {
    const words = textOf(asked["input"]) + textOf(asked["instructions"]) + textOf(asked["text"]);
    if (model === "characters") return nano(words * 15_000);
    const sound = model === "capped" ? 2_000 : 200_000;
    return nano(words * 600 + sound * 12_000);
  },
};

export const OPERATIONS: { readonly [name: string]: Operation } = {
  chat,
  completion,
  drawn,
  vectors,
  ranking,
  judged,
  spoken,
};

/**
 * A request of this operation with cost fields: its own, and others with any name, position, and
 * form.
 */
export function request(operation: Operation, from: string, of: Chance): Fields {
  const body = operation.base(of, from);
  for (let i = of.below(3); i > 0 && operation.own.length > 0; i--) {
    const [name, values] = of.one(operation.own);
    body[name] = of.one(values);
  }
  for (let i = of.below(3); i > 0; i--) {
    const name = of.one(SPELLINGS)(of.one(of.one([MANY, MANY, ROUNDS, LONG, LONG])));
    put(body, of.one(PLACES), name, of.one(FORMS)(of.one([2, 8, 16, 50, 3_000])));
  }
  return body;
}

function put(body: Fields, place: readonly string[], name: string, value: Json): void {
  const [first, ...rest] = place;
  if (first === undefined) {
    body[name] = value;
    return;
  }
  const inList = first.endsWith("[]");
  const key = inList ? first.slice(0, -2) : first;
  const before = inList ? undefined : body[key];
  const inside: Fields =
    typeof before === "object" && before !== null && !Array.isArray(before)
      ? { ...(before as Fields) }
      : {};
  body[key] = inList ? [inside] : inside;
  put(inside, rest, name, value);
}
