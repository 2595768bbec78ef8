// Labs outside mainland China that serve their own models.
import type { ImageDialect } from "tollgate/protocols/images";
import { type Backend, anthropicAt, but, plain } from "./row-backend.ts";
import {
  embeddingModel,
  moderationModel,
  rerankModel,
  transcriptionModel,
} from "./operation-facts.ts";

/** Aspect ratios that xAI supports. */
const XAI_RATIOS = [
  "1:1",
  "16:9",
  "9:16",
  "4:3",
  "3:4",
  "3:2",
  "2:3",
  "2:1",
  "1:2",
  "19.5:9",
  "9:19.5",
  "20:9",
  "9:20",
];

/** Transcription fields that only OpenAI supports. */
const OPENAI_TRANSCRIPTION_FIELDS = [
  "prompt",
  "include",
  "chunking_strategy",
  "known_speaker_names",
  "known_speaker_references",
  "languages",
  "keywords",
];

/** Dialect of xAI's image API, for generation and edits. */
const XAI_IMAGES: ImageDialect = {
  size: "ratio",
  ratios: XAI_RATIOS,
  dropFields: ["quality", "style", "background", "input_fidelity"],
  maxImages: 10,
  resolutions: [
    ["1k", 1024],
    ["2k", 2048],
  ],
};

export const labs: readonly Backend[] = [
  {
    name: "mistral",
    summary: "Mistral AI",
    limits: "mistral",
    errors: "flat",
    unverified: ["limits"],
    stability: "beta",
    base: "https://api.mistral.ai/v1",
    batches: {
      api: "mistral",
      protocols: ["chat-completions", "embeddings", "moderations", "mistral-fim"],
    },
    facts: {
      asOf: "2026-11-22",
      models: [
        embeddingModel("mistral-embed"),
        embeddingModel("codestral-embed"),
        moderationModel("mistral-moderation-latest"),
        transcriptionModel("voxtral-mini-latest"),
      ],
    },
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: [...but(), "stream_options", "logit_bias", "logprobs", "top_logprobs", "user"],
        // Usage arrives with the last chunk, whether requested or not.
        streamUsage: "none",
        renameFields: { seed: "random_seed" },
        toolChoice: "any",
        toolIds: "alnum9",
        reasoning: {
          control: "effort",
          efforts: ["none", "low", "medium", "high", "max"],
          defaultEffort: "high",
          echo: "thinking_parts",
        },
        models: [
          {
            of: ["mistral-small-*", "mistral-medium-*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "high"],
              defaultEffort: "high",
              echo: "thinking_parts",
            },
          },
          {
            of: ["mistral-large-4*"],
            reasoning: {
              control: "effort",
              efforts: ["low", "medium", "high"],
              canDisable: false,
              echo: "thinking_parts",
            },
          },
          {
            of: ["magistral-*"],
            reasoning: { control: "none", canDisable: false, echo: "thinking_parts" },
          },
          {
            of: ["codestral-*", "devstral-*", "ministral-*"],
            reasoning: { control: "none", echo: "never" },
          },
        ],
      },
      embeddings: {
        dimensions: "output_dimension",
        task: false,
        tokenIds: false,
        dropFields: ["user", "truncate", "truncation"],
      },
      moderations: { textOnly: true },
      "mistral-fim": {},
      transcriptions: {
        formats: false,
        translates: false,
        dropFields: OPENAI_TRANSCRIPTION_FIELDS,
      },
    },
  },
  {
    name: "deepseek",
    summary: "DeepSeek",
    limits: "none",
    errors: "openai",
    unverified: ["completions", "limits"],
    stability: "beta",
    base: "https://api.deepseek.com",
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: [...but(), "parallel_tool_calls", "logit_bias", "seed", "user"],
        rejectFields: ["n"],
        reasoning: {
          control: "thinking.type",
          alsoAcceptsEffort: true,
          efforts: ["low", "high", "max"],
          echo: "reasoning_content",
          echoRequired: true,
        },
        models: [
          {
            of: ["deepseek-v4-pro*"],
            reasoning: {
              control: "thinking.type",
              alsoAcceptsEffort: true,
              efforts: ["high", "max"],
              echo: "reasoning_content",
              echoRequired: true,
            },
          },
        ],
      },
      messages: anthropicAt("anthropic/v1"),
      completions: { base: "beta" },
    },
  },
  {
    name: "xai",
    summary: "xAI",
    limits: "none",
    errors: "words",
    unverified: ["refused fields", "limits", "affinity", "realtime", "websocket"],
    base: "https://api.x.ai/v1",
    sessionAffinity: { field: "prompt_cache_key" },
    models: { images: ["grok-imagine-*", "grok-2-image*"], realtime: ["grok-voice*"] },
    protocols: {
      responses: { servedModels: ["grok-*"], socket: "/responses" },
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        strictTools: true,
        dropFields: [...but(), "presence_penalty", "frequency_penalty"],
        rejectFields: ["stop"],
        reasoning: {
          control: "effort",
          efforts: ["low", "medium", "high", "xhigh"],
          canDisable: false,
          echo: "never",
        },
        models: [
          {
            of: ["grok-4.3*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "low", "medium", "high", "xhigh"],
              defaultEffort: "medium",
              echo: "never",
            },
          },
        ],
      },
      images: { ...XAI_IMAGES, servedModels: ["grok-imagine-*", "grok-2-image*"] },
      "xai-edits": { ...XAI_IMAGES, servedModels: ["grok-imagine-*"] },
      realtime: { servedModels: ["grok-voice*"] },
    },
  },
  {
    name: "perplexity",
    summary: "Perplexity",
    limits: "none",
    errors: "openai",
    unverified: ["responses", "limits", "errors"],
    stability: "beta",
    base: "https://api.perplexity.ai",
    models: false,
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: [...but(), "parallel_tool_calls", "seed", "user", "logit_bias"],
        rejectFields: ["n", "tools", "logprobs"],
        webSearch: true,
        streamUsage: "none",
        reasoningNotInOutput: true,
        thinkTags: true,
        reasoning: {
          control: "effort",
          efforts: ["minimal", "low", "medium", "high"],
          echo: "never",
        },
        models: [
          {
            of: ["sonar", "sonar-pro"],
            thinkTags: false,
            reasoning: { control: "none", echo: "never" },
          },
        ],
      },
      responses: { base: "v1" },
    },
  },
  {
    name: "cohere",
    summary: "Cohere: chat by its compatibility API, the rest natively",
    limits: "none",
    errors: "message",
    unverified: ["models", "limits"],
    base: "https://api.cohere.ai/compatibility/v1",
    models: { path: "../../v1/models?page_size=1000" },
    facts: {
      asOf: "2026-11-22",
      models: [
        embeddingModel("embed-v4.0", "0.12"),
        rerankModel("rerank-v3.5", { searches: "0.002" }),
      ],
    },
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: [...but(), "parallel_tool_calls", "logit_bias", "user", "top_logprobs"],
        rejectFields: ["n"],
        reasoning: {
          control: "effort",
          efforts: ["none", "high"],
          defaultEffort: "high",
          echo: "never",
        },
      },
      "cohere-embed": { base: "../../v2" },
      // The API ranks texts but does not return them. The gateway adds the texts to its response.
      rerank: { base: "../../v2", returnsDocuments: false, textOnly: true, dropFields: ["user"] },
    },
  },
  {
    name: "voyage",
    summary: "Voyage AI",
    limits: "none",
    errors: "flat",
    unverified: ["limits", "errors"],
    base: "https://api.voyageai.com/v1",
    models: false,
    facts: {
      asOf: "2026-11-22",
      models: [embeddingModel("voyage-3.5", "0.06"), rerankModel("rerank-2.5", { input: "0.05" })],
    },
    protocols: {
      embeddings: {
        encodingFormats: ["base64"],
        dimensions: "output_dimension",
        task: { field: "input_type", words: { query: "query", document: "document" } },
        truncate: "truncation",
        tokenIds: false,
        dropFields: ["user"],
      },
      "voyage-rerank": {},
    },
  },
  {
    name: "meta",
    summary: "Meta Model API",
    limits: "none",
    errors: "openai",
    unverified: ["base", "responses", "limits", "errors"],
    base: "https://api.meta.ai/v1",
    models: false,
    protocols: { responses: {} },
  },
  {
    name: "recraft",
    summary: "Recraft",
    limits: "none",
    errors: "openai",
    unverified: ["limits", "errors"],
    base: "https://external.api.recraft.ai/v1",
    models: false,
    protocols: { images: { maxImages: 6 } },
  },
];
