// Google's Gemini API: its own protocol, for chats, pictures and vectors, and the live list of models. Its imitation of chat
// completions is offered too, for clients that want what only that has; the reasons stand in the README beside this.
import {
  apiKey,
  defineProvider,
  type JsonObject,
  type ProviderAccess,
  type ModelInfo,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { countIn, page, textIn } from "tollgate/protocols/compatible";
import {
  gemini,
  geminiEmbedding,
  geminiEmbeddingOne,
  geminiImage,
} from "tollgate/protocols/gemini";
import { embeds } from "./embedding-facts.ts";
import { several } from "./google/several.ts";

const VERSION = "v1beta";

export default defineProvider({
  api: 1,
  name: "google",
  summary: "Google Gemini API",
  stability: "beta",
  unchecked: ["thinking by model", "compatible"],
  credential: apiKey,
  facts: { asOf: "2026-11-22", models: [embeds("gemini-embedding-001", "0.15")] },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        default: "https://generativelanguage.googleapis.com",
        description: "Where the API is, with or without /v1beta",
      },
      compatible: {
        type: "boolean",
        default: false,
        description:
          "Clients of chat completions reach Google's imitation of that protocol byte for byte: several choices and new fields pass, thoughts and their signatures do not",
      },
    },
  },
  setup: ({ base_url, compatible }) => {
    const base = versioned(base_url);
    const auth = { header: "x-goog-api-key", field: "api_key" } as const;
    return {
      endpoints: [
        { protocol: gemini(), base, auth, serves: (model: string) => !draws(model) },
        { protocol: geminiImage(), base, auth, serves: draws, can: { n: false } },
        { protocol: geminiEmbedding(), base, auth, streams: "never" as const },
        { protocol: geminiEmbeddingOne(), base, auth, streams: "never" as const },
        // One request makes one picture: more of them are as many requests.
        {
          kind: "image" as const,
          run: several,
          base,
          auth,
          serves: draws,
          streams: "never" as const,
        },
        ...(compatible
          ? [
              {
                protocol: chatCompletions({
                  maxTokens: "max_tokens",
                  developerRole: false,
                  customTools: false,
                  drop: IGNORED,
                  reasoning: { control: "effort", efforts: EFFORTS, echo: "never" },
                }),
                base: `${base}/openai`,
                auth: { header: "authorization", prefix: "Bearer ", field: "api_key" } as const,
                serves: (model: string) => !draws(model),
              },
            ]
          : []),
      ],
      models: listed,
    };
  },
});

const EFFORTS = ["none", "minimal", "low", "medium", "high"];
const IGNORED = ["store", "metadata", "safety_identifier", "prompt_cache_key", "verbosity"];

/** Users know this address without its version; written out it means the same. */
const versioned = (base: string): string => {
  const bare = base.replace(/\/+$/, "");
  return /\/v\d\w*$/.test(bare) ? bare : `${bare}/${VERSION}`;
};

/** The list does not say what a model makes. Their names do. */
const draws = (model: string): boolean => /-image\b|banana/.test(model);

/** Models that neither chat, draw nor embed, though they are asked in the same way. */
const OTHER = /-tts\b|native-audio|-live\b|embedding|aqa|veo|imagen|lyria/;

/** No upstream has more pages of models than this. */
const PAGES = 20;

async function listed(line: ProviderAccess): Promise<ModelInfo[]> {
  const models: ModelInfo[] = [];
  let token = "";
  for (let turn = 0; turn < PAGES; turn++) {
    const { rows, beside } = await page(line, `models?pageSize=1000${token}`, {
      under: ["models"],
      absent: true,
    });
    for (const row of rows) models.push(...infoOf(row));
    const next = textIn(beside["nextPageToken"]);
    if (next === undefined) break;
    token = `&pageToken=${encodeURIComponent(next)}`;
  }
  return models;
}

function infoOf(row: JsonObject): readonly ModelInfo[] {
  const name = textIn(row["name"]);
  const methods = row["supportedGenerationMethods"];
  if (name === undefined || !Array.isArray(methods)) return [];
  const model = name.replace(/^models\//, "");
  if (methods.includes("embedContent") && !methods.includes("generateContent"))
    return [
      {
        model,
        kind: "embedding",
        name: textIn(row["displayName"]),
        limits: { input: countIn(row["inputTokenLimit"]) },
      },
    ];
  if (!methods.includes("generateContent") || OTHER.test(name)) return [];
  const drawing = draws(model);
  const thinks = row["thinking"];
  return [
    {
      model,
      kind: drawing ? "image" : "chat",
      name: textIn(row["displayName"]),
      limits: drawing
        ? { images: 1 }
        : { context: countIn(row["inputTokenLimit"]), output: countIn(row["outputTokenLimit"]) },
      ...(typeof thinks === "boolean" && !drawing && { can: { reasoning: thinks } }),
    },
  ];
}
