// OpenAI: responses, chat, images, embeddings, moderations, and audio under one base URL. Responses
// come first, because translated requests lose least in that protocol.
import { fromRow } from "tollgate/protocols/compatible";
import {
  embeddingModel,
  moderationModel,
  transcriptionModel,
  speechModel,
} from "./operation-facts.ts";

export default fromRow({
  name: "openai",
  summary: "OpenAI",
  stability: "beta",
  base: "https://api.openai.com/v1",
  sessionAffinity: { field: "prompt_cache_key" },
  models: { images: ["gpt-image-*", "chatgpt-image-*", "dall-e-*"] },
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
      transcriptionModel("whisper-1", "100"),
      transcriptionModel("gpt-transcribe", "75"),
      transcriptionModel("gpt-4o-transcribe"),
      transcriptionModel("gpt-4o-mini-transcribe"),
      transcriptionModel("gpt-4o-transcribe-diarize"),
    ],
  },
  protocols: {
    responses: {},
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
