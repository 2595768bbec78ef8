// Environment for SDK tests: the real gateway with a model in each of the four upstream protocols.
// It answers by the prompt, and rejects what no provider of that protocol would accept: a result
// without its call, or a history without its start. The gateway's own ledger has the cost of each
// call, under the name of its check.
import { basename } from "node:path";
import type { Usage } from "tollgate/plugin";
import {
  errorResponse,
  jsonResponse,
  say,
  scriptedModel,
  think,
  startUpstream,
  type ScriptedResponse,
  type UpstreamRequest,
  type ScriptedReply,
  type ScriptedRoutes,
  type ModelScript,
} from "tollgate/testing";
import { startDaemon } from "../kit/process/daemon.ts";
import { speakingGemini } from "../protocols/gemini/speech.ts";
import { HEARS as HEARING, speaking as speakingAloud } from "../e2e/operations/audio-vendors.ts";
import { batchEmbedding, embedding, oneEmbedding } from "../e2e/operations/embedding-vendors.ts";
import { heard, refusal, type Heard } from "./heard.ts";
import { settled } from "./ledger.ts";
import { PICTURE, USAGE } from "./scripts.ts";

/** The chat models, by their provider's protocol. */
export const TALKS = {
  mchat: "mchat/llama-4",
  mresp: "mresp/gpt-5.5",
  mmsg: "mmsg/claude-sonnet-4-6",
  mgem: "mgem/gemini-3.5-flash",
} as const;

/** The image models. */
export const DRAWS = {
  mchat: "mchat/sdxl",
  mresp: "mresp/gpt-image-2",
  mgem: "mgem/gemini-3-pro-image",
} as const;

/**
 * The embedding models: of a provider with one format, of one with both, and of another protocol.
 */
export const EMBEDS = {
  mchat: "mchat/nomic-embed",
  mresp: "mresp/text-embedding-3-small",
  mgem: "mgem/gemini-embedding-001",
} as const;

/** The transcription models: of a provider without counts, and of one that counts seconds. */
export const HEARS = { mchat: "mchat/my-whisper", mresp: "mresp/whisper-1" } as const;

/** The speech models: billed by character, and by tokens that are only reported in events. */
export const SPEAKS = { mchat: "mchat/my-tts", mresp: "mresp/gpt-4o-mini-tts" } as const;

/** The reranking models, for each of the three protocols. */
export const RANKS = {
  mcoh: "mcoh/rerank-v3.5",
  mvoy: "mvoy/rerank-2.5",
  mvllm: "mvllm/bge-reranker",
} as const;

/** The image edit models. */
export const EDITS = {
  mresp: "mresp/gpt-image-2",
  mgem: "mgem/gemini-3-pro-image",
} as const;

export interface Four extends AsyncDisposable {
  /** URL of the gateway, without /v1. */
  readonly url: string;
  readonly key: string;
  /** The secret of a key with a budget of zero. */
  spent(): Promise<string>;
  /** Bills of all calls of this check. */
  billed(check: string): Promise<readonly Usage[]>;
}

/** The header that identifies calls of one check. */
export const CHECK = "x-check";

/** The models' default response. */
export const HELLO = "Grüße aus Oslo 🌍";
const SIGNATURE = "CiQBjz1rX4u8Wq9zv0R2H3Jp5mGmBw+L7dT2Yy/0a1bQ";

function saying({ words, results, tools, pictures }: Heard): ModelScript {
  const notes = /Read these notes, one after the other: (.+)\./.exec(words)?.[1]?.split(" ") ?? [];
  // One per turn: the last result determines the next one.
  const read = notes.findIndex((note) => results.some((text) => text.includes(basename(note)))) + 1;
  if (tools.includes("read_file") && read < notes.length && (read > 0 || results.length === 0))
    return think("I should look.", SIGNATURE).call("read_file", { file_path: notes[read]! });
  if (results.length > 0) return say(`They say: ${results.join(" ")}`);
  if (pictures > 0) return say("A dot.");
  if (words.includes("break off")) return say("Half of it ").fail("The model broke.");
  if (words.includes("weather") && tools.includes("get_weather"))
    return think("I should look.", SIGNATURE)
      .say("Let me see.")
      .call("get_weather", { city: "Oslo" })
      .call("get_weather", { city: 'R"ome' });
  // Some request a schema by a tool of their own, others by a response format.
  const shaped = tools.find((name) => /^(Place|final_result|json)$/.test(name));
  if (shaped !== undefined) return say("").call(shaped, { city: "Oslo" });
  if (words.includes("Which city")) return say('{"city":"Oslo"}');
  return think("Hm, hm.", SIGNATURE).say(HELLO);
}

/** Response for a client that classifies a request in order to choose a model. */
const CHOICE = say(JSON.stringify({ complexity_reasoning: "It is short.", complexity_score: 3 }));

/** Duration of the silence that a model keeps on request. */
export const SILENCE_MS = 20_000;

/** Rejections have a provider's format, and show in the client. */
const judged =
  (
    then: (
      speech: ModelScript,
      asked: UpstreamRequest,
    ) => ScriptedResponse | Promise<ScriptedResponse>,
  ): ScriptedReply =>
  (asked) => {
    const why = refusal(asked);
    if (why === undefined) {
      const answer = /"complexity_score"/.test(String(asked.body)) ? CHOICE : saying(heard(asked));
      const said = then(answer.usage(USAGE), asked);
      return heard(asked).words.includes("be silent")
        ? Promise.resolve(said).then((answer) => ({ ...answer, delayMs: SILENCE_MS }))
        : said;
    }
    const refused = errorResponse(400, why);
    return typeof refused === "function" ? refused(asked) : (refused as ScriptedResponse);
  };

const B64 = PICTURE.toString("base64");
/** These providers count the input of an image. */
const drawn = jsonResponse({
  created: 1,
  data: [{ b64_json: B64 }],
  usage: {
    input_tokens: 9,
    output_tokens: 1000,
    total_tokens: 1009,
    input_tokens_details: { text_tokens: 9, image_tokens: 0 },
    output_tokens_details: { text_tokens: 0, image_tokens: 1000 },
  },
});
const drawnByGemini = jsonResponse({
  candidates: [
    {
      content: { role: "model", parts: [{ inlineData: { mimeType: "image/png", data: B64 } }] },
      finishReason: "STOP",
    },
  ],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1120, totalTokenCount: 1125 },
});

/** Order of three documents: the last, the first, the second. */
const SCORES = [0.4, 0.1, 0.98];
const ranked = ({ documents }: { documents: readonly unknown[] }) =>
  documents.map((_, index) => ({ index, relevance_score: SCORES[index] ?? 0 }));
const ranks: ScriptedRoutes = {
  "POST /cohere/v2/rerank": (asked) =>
    jsonResponse({
      id: "c1",
      results: ranked(asked.json()),
      meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } },
    }),
  "POST /voyage/v1/rerank": (asked) =>
    jsonResponse({
      object: "list",
      data: ranked(asked.json()),
      model: "rerank-2.5",
      usage: { total_tokens: 26 },
    }),
  "POST /vllm/v1/rerank": (asked) =>
    jsonResponse({ id: "v1", results: ranked(asked.json()), usage: { total_tokens: 31 } }),
  "GET /vllm/v1/models": jsonResponse({ data: [] }),
  "GET /cohere/v1/models": jsonResponse({ models: [] }),
};

const listed = (...ids: string[]) =>
  jsonResponse({ object: "list", data: ids.map((id) => ({ id })) });

function routes(): ScriptedRoutes {
  const gemini = (asked: UpstreamRequest): ScriptedResponse | Promise<ScriptedResponse> => {
    if (asked.path.includes("-image:")) return drawnByGemini;
    if (asked.path.endsWith(":countTokens")) return jsonResponse({ totalTokens: 42 });
    const talk = judged((speech, one) => {
      const route = speakingGemini(speech)["POST /v1beta/models/*"] as (
        a: UpstreamRequest,
      ) => ScriptedResponse;
      return route(one);
    }) as (a: UpstreamRequest) => ScriptedResponse;
    return talk(asked);
  };
  const inOwn = judged((speech, asked) => speech.toResponse(asked));
  const model = (name: string, ...methods: readonly string[]) => ({
    name: `models/${name}`,
    supportedGenerationMethods: methods.length > 0 ? methods : ["generateContent", "countTokens"],
    thinking: true,
  });
  return {
    ...ranks,
    "POST /openai/v1/images/edits": drawn,
    "POST /chat/v1/chat/completions": inOwn,
    "POST /chat/v1/images/generations": jsonResponse({ created: 1, data: [{ b64_json: B64 }] }),
    "POST /chat/v1/embeddings": embedding({ forms: false }),
    "POST /chat/v1/audio/*": HEARING["POST /local/v1/audio/*"],
    "POST /chat/v1/audio/speech": speakingAloud("characters"),
    "GET /chat/v1/models": listed("llama-4", "sdxl", "nomic-embed", "my-whisper", "my-tts"),
    "POST /openai/v1/responses": inOwn,
    "POST /openai/v1/responses/input_tokens": jsonResponse({
      object: "response.input_tokens",
      input_tokens: 42,
    }),
    "POST /openai/v1/images/generations": drawn,
    "POST /openai/v1/embeddings": embedding(),
    "POST /openai/v1/audio/transcriptions": HEARING["POST /openai/v1/audio/transcriptions"],
    "POST /openai/v1/audio/translations": HEARING["POST /openai/v1/audio/translations"],
    "POST /openai/v1/audio/speech": speakingAloud("tokens"),
    "GET /openai/v1/models": listed(
      "gpt-5.5",
      "gpt-image-2",
      "text-embedding-3-small",
      "whisper-1",
      "gpt-4o-mini-tts",
    ),
    "POST /anthropic/v1/messages": inOwn,
    "POST /anthropic/v1/messages/count_tokens": jsonResponse({ input_tokens: 42 }),
    "GET /anthropic/v1/models": scriptedModel(say(""), ["claude-sonnet-4-6"])["GET /v1/models"]!,
    "POST /v1beta/models/gemini-embedding-001:batchEmbedContents": batchEmbedding,
    "POST /v1beta/models/gemini-embedding-001:embedContent": oneEmbedding,
    "POST /v1beta/models/*": gemini,
    "GET /v1beta/models": jsonResponse({
      models: [
        model("gemini-3.5-flash"),
        model("gemini-3-pro-image"),
        model("gemini-embedding-001", "embedContent", "batchEmbedContents"),
      ],
    }),
  };
}

const yaml = (url: string) => `
frontends: [chat-completions, messages, { use: responses, with: { background: {} } }, images, embeddings, rerank, speech, transcriptions, gemini, models]
middleware: [auth, { use: usage, with: { label_headers: [${CHECK}] } }]
store: memory
providers:
  mchat: { use: openai-compatible, with: { base_url: "${url}/chat/v1", api_key: k, images: ["sd*"], embeddings: ["nomic*"], speech: ["*tts"], transcriptions: ["*whisper"] } }
  mresp:
    use: openai
    with: { base_url: "${url}/openai/v1", api_key: k }
    models: { gpt-5.5: { protocols: [responses] } }
  mmsg: { use: anthropic, with: { base_url: "${url}/anthropic/v1", api_key: k } }
  mgem: { use: google, with: { base_url: "${url}", api_key: k } }
  mcoh: { use: cohere, with: { base_url: "${url}/cohere/compatibility/v1", api_key: k }, models: { rerank-v3.5: { operation: rerank } } }
  mvoy: { use: voyage, with: { base_url: "${url}/voyage/v1", api_key: k } }
  mvllm: { use: vllm, with: { base_url: "${url}/vllm/v1" }, models: { bge-reranker: { operation: rerank, price: { input: "0.02" } } } }
# Model names that Gemini CLI requests by itself.
models:
  gemini-3.5-flash-lite: [mresp/gpt-5.5]
  gemini-3.8-flash: [mmsg/claude-sonnet-4-6]
`;

export async function four(): Promise<Four> {
  const up = await startUpstream(routes());
  const gateway = await startDaemon({ yaml: yaml(up.url) });
  let keys = 0;
  return {
    url: gateway.url,
    key: gateway.key,
    async spent() {
      const limits = ["usd=0/day"];
      const made = await gateway.ask("keys.create", { name: `spent-${++keys}`, limits });
      return (made as unknown as { secret: string }).secret;
    },
    billed: async (check) =>
      (await settled(gateway))
        .filter(({ labels }) => labels[CHECK] === check)
        .map(({ usage }) => usage),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await up.close();
    },
  };
}
