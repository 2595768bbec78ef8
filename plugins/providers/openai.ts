// OpenAI: responses, chat, images, embeddings, moderations and sound under one base. Responses stand first: what has to be translated loses least there.
import { fromRow } from "tollgate/protocols/compatible";
import { embeds, judges } from "./embedding-facts.ts";
import { hears, speaks } from "./sound-facts.ts";

export default fromRow({
  name: "openai",
  summary: "OpenAI",
  stability: "beta",
  base: "https://api.openai.com/v1",
  affinity: { field: "prompt_cache_key" },
  models: { images: ["gpt-image-*", "chatgpt-image-*", "dall-e-*"] },
  facts: {
    asOf: "2026-11-22",
    models: [
      embeds("text-embedding-3-small", "0.02"),
      embeds("text-embedding-3-large", "0.13"),
      judges("omni-moderation-latest"),
      speaks("tts-1", { retires: "2027-01-06" }),
      speaks("tts-1-hd", { retires: "2027-01-06" }),
      speaks("gpt-4o-mini-tts", {
        price: { input: "0.6", audio_out: "12" },
        retires: "2027-01-06",
      }),
      hears("whisper-1", "100"),
      hears("gpt-transcribe", "75"),
      hears("gpt-4o-transcribe"),
      hears("gpt-4o-mini-transcribe"),
      hears("gpt-4o-transcribe-diarize"),
    ],
  },
  speaks: {
    responses: {},
    "chat-completions": {
      maxTokens: "max_completion_tokens",
      cacheWrite: "30m",
      webSearch: true,
      reasoning: { control: "effort", on: "medium", echo: "never" },
      models: [
        // These do not reason, and take no word about it.
        {
          of: ["gpt-4*", "chatgpt-4*", "gpt-audio*"],
          reasoning: { control: "none", echo: "never" },
        },
        {
          of: ["o1*", "o3*", "o4*"],
          reasoning: {
            control: "effort",
            efforts: ["low", "medium", "high"],
            off: false,
            on: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5", "gpt-5-*"],
          reasoning: {
            control: "effort",
            efforts: ["minimal", "low", "medium", "high"],
            off: false,
            on: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.1*"],
          reasoning: {
            control: "effort",
            efforts: ["none", "low", "medium", "high"],
            on: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.2*", "gpt-5.3*", "gpt-5.4*", "gpt-5.5*"],
          reasoning: {
            control: "effort",
            efforts: ["none", "low", "medium", "high", "xhigh"],
            on: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.5-pro*"],
          reasoning: {
            control: "effort",
            efforts: ["medium", "high", "xhigh"],
            off: false,
            on: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-5.6*", "gpt-6*"],
          reasoning: {
            control: "effort",
            efforts: ["none", "low", "medium", "high", "xhigh", "max"],
            on: "medium",
            echo: "never",
          },
        },
        {
          of: ["gpt-6-astra*", "gpt-6.1-sol*"],
          reasoning: {
            control: "effort",
            efforts: ["low", "medium", "high", "xhigh", "max"],
            off: false,
            on: "medium",
            echo: "never",
          },
        },
      ],
    },
    images: {
      edits: true,
      responseFormat: "bytes",
      streams: "asked",
      // Words of models that are gone, which clients still say.
      qualities: { standard: "medium", hd: "high" },
      drop: ["style"],
      most: 10,
      serves: ["gpt-image-*", "chatgpt-image-*", "dall-e-*"],
    },
    embeddings: { task: false },
    moderations: {},
    // What counts nothing but in events is asked for them.
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
