// OpenAI: responses, chat, images, embeddings, moderations, and audio under one base URL. Responses
// is the first protocol, because translated requests lose the least in it.
import { fromRow } from "tollgate/protocols/compatible";
import type { ModelInfo } from "tollgate/plugin";
import {
  embeddingModel,
  moderationModel,
  transcriptionModel,
  speechModel,
} from "./operation-facts.ts";
import { realtimeModel } from "./realtime-facts.ts";
import { videoModel, VIDEO_SIZES } from "./video-facts.ts";

/** Rates of audio and images that several realtime models share. */
const AUDIO = { input: "32", cached: "0.4", output: "64" };
const IMAGE = { input: "5", cached: "0.5" };
const MINI = {
  text: { input: "0.6", cached: "0.06", output: "2.4" },
  audio: { input: "10", cached: "0.3", output: "20" },
  image: { input: "0.8", cached: "0.08" },
};
const TWO = {
  price: { text: { input: "4", cached: "0.4", output: "24" }, audio: AUDIO, image: IMAGE },
  limits: { context: 128_000, output: 32_000 },
};
const ONE = {
  price: { text: { input: "4", cached: "0.4", output: "16" }, audio: AUDIO, image: IMAGE },
  limits: { context: 32_000, output: 4_096 },
};

const REALTIME_MODELS: readonly ModelInfo[] = [
  realtimeModel("gpt-realtime-2.1", TWO),
  realtimeModel("gpt-realtime-2.1-mini", {
    price: MINI,
    limits: { context: 128_000, output: 32_000 },
  }),
  realtimeModel("gpt-realtime-2", TWO),
  realtimeModel("gpt-realtime-1.5", ONE),
  realtimeModel("gpt-realtime", { ...ONE, retires: "2027-01-20" }),
  realtimeModel("gpt-realtime-2025-08-28", { ...ONE, retires: "2027-01-20" }),
  realtimeModel("gpt-realtime-mini", {
    price: MINI,
    limits: { context: 32_000, output: 4_096 },
    retires: "2027-01-20",
  }),
  realtimeModel("gpt-4o-realtime-preview", {
    price: {
      text: { input: "5", cached: "2.5", output: "20" },
      audio: { input: "40", cached: "2.5", output: "80" },
    },
    limits: { context: 32_000, output: 4_096 },
  }),
  realtimeModel("gpt-4o-mini-realtime-preview", {
    price: {
      text: { input: "0.6", cached: "0.3", output: "2.4" },
      audio: { input: "10", cached: "0.3", output: "20" },
    },
    limits: { context: 16_000, output: 4_096 },
  }),
];

const VIDEO_MODELS = ["sora-*"];

/** Days after which OpenAI deletes the lines and the results of a batch. */
const BATCH_DAYS = 30;

export default fromRow({
  name: "openai",
  summary: "OpenAI",
  stability: "beta",
  base: "https://api.openai.com/v1",
  sessionAffinity: { field: "prompt_cache_key" },
  batches: {
    protocols: ["responses", "chat-completions", "images", "embeddings", "moderations"],
    uploadFields: {
      "expires_after[anchor]": "created_at",
      "expires_after[seconds]": String(BATCH_DAYS * 86_400),
    },
    createFields: {
      output_expires_after: { anchor: "created_at", seconds: BATCH_DAYS * 86_400 },
    },
    dataPolicy: { retention: { kind: "days", days: BATCH_DAYS }, requires: "unavailable" },
  },
  background: true,
  videos: { servedModels: VIDEO_MODELS },
  models: {
    videos: VIDEO_MODELS,
    images: ["gpt-image-*", "chatgpt-image-*", "dall-e-*"],
    realtime: [
      "gpt-realtime",
      "gpt-realtime-mini*",
      "gpt-realtime-1*",
      "gpt-realtime-2*",
      "gpt-4o-realtime*",
      "gpt-4o-mini-realtime*",
    ],
  },
  facts: {
    asOf: "2026-11-22",
    models: [
      embeddingModel("text-embedding-3-small", "0.02"),
      embeddingModel("text-embedding-3-large", "0.13"),
      moderationModel("omni-moderation-latest"),
      speechModel("tts-1", { retires: "2027-01-06" }),
      speechModel("tts-1-hd", { retires: "2027-01-06" }),
      speechModel("gpt-4o-mini-tts", {
        price: { input: "0.6", audio_out: "12" },
        retires: "2027-01-06",
      }),
      ...REALTIME_MODELS,
      videoModel("sora-2", [{ usd: "0.1", sizes: VIDEO_SIZES.p720 }]),
      videoModel("sora-2-pro", [
        { usd: "0.3", sizes: VIDEO_SIZES.p720 },
        { usd: "0.5", sizes: VIDEO_SIZES.p1024 },
      ]),
      transcriptionModel("whisper-1", "100"),
      transcriptionModel("gpt-transcribe", "75"),
      transcriptionModel("gpt-4o-transcribe"),
      transcriptionModel("gpt-4o-mini-transcribe"),
      transcriptionModel("gpt-4o-transcribe-diarize"),
    ],
  },
  protocols: {
    responses: { socket: "/responses" },
    "chat-completions": {
      maxTokens: "max_completion_tokens",
      cacheWriteTtl: "30m",
      webSearch: true,
      reasoning: { control: "effort", defaultEffort: "medium", echo: "never" },
      models: [
        // These models do not reason and reject reasoning parameters.
        {
          of: ["gpt-4*", "chatgpt-4*", "gpt-audio*"],
          reasoning: { control: "none", echo: "never" },
        },
        {
          of: ["o1*", "o3*", "o4*"],
          reasoning: {
            control: "effort",
            efforts: ["low", "medium", "high"],
            canDisable: false,
            defaultEffort: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5", "gpt-5-*"],
          reasoning: {
            control: "effort",
            efforts: ["minimal", "low", "medium", "high"],
            canDisable: false,
            defaultEffort: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.1*"],
          reasoning: {
            control: "effort",
            efforts: ["none", "low", "medium", "high"],
            defaultEffort: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.2*", "gpt-5.3*", "gpt-5.4*", "gpt-5.5*"],
          reasoning: {
            control: "effort",
            efforts: ["none", "low", "medium", "high", "xhigh"],
            defaultEffort: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.5-pro*"],
          reasoning: {
            control: "effort",
            efforts: ["medium", "high", "xhigh"],
            canDisable: false,
            defaultEffort: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.6*", "gpt-6*"],
          reasoning: {
            control: "effort",
            efforts: ["none", "low", "medium", "high", "xhigh", "max"],
            defaultEffort: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-6-astra*", "gpt-6.1-sol*"],
          reasoning: {
            control: "effort",
            efforts: ["low", "medium", "high", "xhigh", "max"],
            canDisable: false,
            defaultEffort: "medium",
            echo: "never",
          },
        },
      ],
    },
    images: {
      edits: true,
      responseFormat: "bytes",
      streams: "on_request",
      // Quality names of retired models that clients still send.
      qualityNames: { standard: "medium", hd: "high" },
      dropFields: ["style"],
      maxImages: 10,
      servedModels: ["gpt-image-*", "chatgpt-image-*", "dall-e-*"],
    },
    embeddings: { task: false },
    moderations: {},
    realtime: { calls: true },
    // These models report usage only in event streams, so streams are requested from them.
    speech: { events: ["gpt-*"] },
    transcriptions: {
      formats: [
        { of: ["whisper-*"], formats: ["json", "text", "srt", "verbose_json", "vtt"] },
        { of: ["gpt-4o-transcribe-diarize*"], formats: ["json", "text", "diarized_json"] },
        { of: ["gpt-4o-transcribe*", "gpt-4o-mini-transcribe*"], formats: ["json"] },
      ],
    },
  },
});
