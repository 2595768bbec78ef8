// Google's Gemini API: the gemini protocol for chat, images, and embeddings, and the live model
// list. Google's OpenAI-compatible API is available too, for clients that need its specific
// features. The README in this folder gives the reasons.
import {
  apiKeySchema,
  defineProvider,
  type JsonObject,
  type ProviderClient,
  type ModelInfo,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { asPositiveCount, fetchListPage, asNonEmptyText } from "tollgate/protocols/compatible";
import {
  gemini,
  geminiEmbedding,
  geminiSingleEmbedding,
  geminiImage,
} from "tollgate/protocols/gemini";
import { geminiLive } from "tollgate/protocols/gemini-live";
import { embeddingModel } from "./operation-facts.ts";
import { realtimeModel } from "./realtime-facts.ts";
import { geminiBatches } from "./google/batches.ts";
import { generateImages } from "./google/multiple-images.ts";
import { geminiVideos } from "./google/videos.ts";
import { videoModel, VIDEO_SIZES } from "./video-facts.ts";

const VERSION = "v1beta";
const LIVE_PATH = `/ws/google.ai.generativelanguage.${VERSION}.GenerativeService.BidiGenerateContent`;

/** Google publishes one rate for audio and video. Cached input has no rate. */
const NATIVE_AUDIO = {
  price: {
    text: { input: "0.5", output: "2" },
    audio: { input: "3", output: "12" },
    image: { input: "3" },
  },
  limits: { context: 131_072, output: 8_192 },
};
const LIVE_MODELS: readonly ModelInfo[] = [
  realtimeModel("gemini-2.5-flash-native-audio-latest", NATIVE_AUDIO),
  realtimeModel("gemini-2.5-flash-native-audio-preview-12-2025", NATIVE_AUDIO),
  realtimeModel("gemini-2.5-flash-native-audio-preview-09-2025", NATIVE_AUDIO),
  realtimeModel("gemini-3.1-flash-live-preview", { limits: { context: 131_072, output: 65_536 } }),
  realtimeModel("gemini-3.8-live", {}),
];

export default defineProvider({
  api: 1,
  name: "google",
  summary: "Google Gemini API",
  stability: "beta",
  unverified: ["thinking by model", "compatible"],
  credential: apiKeySchema,
  facts: {
    asOf: "2026-11-22",
    models: [
      embeddingModel("gemini-embedding-001", "0.15"),
      ...LIVE_MODELS,
      videoModel("veo-3.1-generate-preview", [
        { usd: "0.4", sizes: [...VIDEO_SIZES.p720, ...VIDEO_SIZES.p1080] },
        { usd: "0.6", sizes: VIDEO_SIZES.p2160 },
      ]),
    ],
  },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        default: "https://generativelanguage.googleapis.com",
        description: "Base URL of the API, with or without /v1beta",
      },
      compatible: {
        type: "boolean",
        default: false,
        description:
          "Whether chat completions are forwarded unchanged to Google's OpenAI-compatible " +
          "API. It supports several choices and new fields, but no reasoning or signatures",
      },
    },
  },
  setup: ({ base_url, compatible }) => {
    const base = withVersion(base_url);
    const auth = { header: "x-goog-api-key", field: "api_key" } as const;
    return {
      endpoints: [
        {
          protocol: gemini(),
          base,
          auth,
          servesModel: isChatModel,
          batches: geminiBatches(base),
        },
        { protocol: geminiImage(), base, auth, servesModel: isImageModel, can: { n: false } },
        { protocol: geminiEmbedding(), base, auth, streaming: "never" as const },
        { protocol: geminiSingleEmbedding(), base, auth, streaming: "never" as const },
        {
          protocol: geminiLive(),
          base: base.replace(/\/v\d\w*$/, ""),
          auth,
          servesModel: isLiveModel,
          sockets: { live: { path: LIVE_PATH } },
        },
        {
          operation: "video" as const,
          videos: geminiVideos,
          base,
          auth,
          servesModel: isVideoModel,
        },
        // A request returns one image, so several images require several requests.
        {
          operation: "image" as const,
          run: generateImages,
          base,
          auth,
          servesModel: isImageModel,
          streaming: "never" as const,
        },
        ...(compatible
          ? [
              {
                protocol: chatCompletions({
                  maxTokens: "max_tokens",
                  developerRole: false,
                  customTools: false,
                  dropFields: IGNORED_FIELDS,
                  reasoning: { control: "effort", efforts: EFFORTS, echo: "never" },
                }),
                base: `${base}/openai`,
                auth: { header: "authorization", prefix: "Bearer ", field: "api_key" } as const,
                servesModel: isChatModel,
              },
            ]
          : []),
      ],
      listModels: fetchModelList,
    };
  },
});

const EFFORTS = ["none", "minimal", "low", "medium", "high"];
const IGNORED_FIELDS = ["store", "metadata", "safety_identifier", "prompt_cache_key", "verbosity"];

/** Adds the API version to a base URL without one, because users write the URL in both ways. */
const withVersion = (base: string): string => {
  const bare = base.replace(/\/+$/, "");
  return /\/v\d\w*$/.test(bare) ? bare : `${bare}/${VERSION}`;
};

/** The model list does not contain the output type, so the type is derived from the name. */
const isImageModel = (model: string): boolean => /-image\b|banana/.test(model);

/** Models that listen and speak over a socket. */
const isLiveModel = (model: string): boolean => /-live\b|native-audio/.test(model);
const isVideoModel = (model: string): boolean => model.startsWith("veo-");
const isChatModel = (model: string): boolean =>
  !isImageModel(model) && !isLiveModel(model) && !isVideoModel(model);

/** Models in the list that do not serve chat, images, or embeddings through this API. */
const UNSUPPORTED_MODEL = /-tts\b|embedding|aqa|veo|imagen|lyria/;

/** Maximum number of pages of a model list. */
const MAX_PAGES = 20;

async function fetchModelList(line: ProviderClient): Promise<ModelInfo[]> {
  const models: ModelInfo[] = [];
  let token = "";
  for (let turn = 0; turn < MAX_PAGES; turn++) {
    const { rows, otherFields } = await fetchListPage(line, `models?pageSize=1000${token}`, {
      fields: ["models"],
      mayBeMissing: true,
    });
    for (const row of rows) models.push(...infoOf(row));
    const next = asNonEmptyText(otherFields["nextPageToken"]);
    if (next === undefined) break;
    token = `&pageToken=${encodeURIComponent(next)}`;
  }
  return models;
}

function infoOf(row: JsonObject): readonly ModelInfo[] {
  const name = asNonEmptyText(row["name"]);
  const methods = row["supportedGenerationMethods"];
  if (name === undefined || !Array.isArray(methods)) return [];
  const model = name.replace(/^models\//, "");
  if (methods.includes("embedContent") && !methods.includes("generateContent"))
    return [
      {
        model,
        operation: "embedding",
        name: asNonEmptyText(row["displayName"]),
        limits: { input: asPositiveCount(row["inputTokenLimit"]) },
      },
    ];
  if (isLiveModel(model) && methods.includes("bidiGenerateContent"))
    return [
      {
        model,
        operation: "realtime",
        name: asNonEmptyText(row["displayName"]),
        limits: {
          context: asPositiveCount(row["inputTokenLimit"]),
          output: asPositiveCount(row["outputTokenLimit"]),
        },
      },
    ];
  if (isLiveModel(model)) return [];
  if (isVideoModel(model) && methods.includes("predictLongRunning"))
    return [{ model, operation: "video", name: asNonEmptyText(row["displayName"]) }];
  if (!methods.includes("generateContent") || UNSUPPORTED_MODEL.test(name)) return [];
  const drawing = isImageModel(model);
  const thinks = row["thinking"];
  return [
    {
      model,
      operation: drawing ? "image" : "chat",
      name: asNonEmptyText(row["displayName"]),
      limits: drawing
        ? { images: 1 }
        : {
            context: asPositiveCount(row["inputTokenLimit"]),
            output: asPositiveCount(row["outputTokenLimit"]),
          },
      ...(typeof thinks === "boolean" && !drawing && { can: { reasoning: thinks } }),
    },
  ];
}
