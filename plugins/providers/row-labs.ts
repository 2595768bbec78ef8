// Laboratories that make models, and serve them from outside mainland China.
import type { ImageDialect } from "tollgate/protocols/images";
import type { Backend } from "./row-backend.ts";
import { embeds, judges, ranks } from "./embedding-facts.ts";
import { hears } from "./sound-facts.ts";
import { anthropicAt, but, plain } from "./row-dialects.ts";

/** What xAI draws in. */
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

/** What only OpenAI reads in a request for a transcript. */
const NOT_HEARD = [
  "prompt",
  "include",
  "chunking_strategy",
  "known_speaker_names",
  "known_speaker_references",
  "languages",
  "keywords",
];

/** How it is asked for pictures, from words and from others. */
const XAI_IMAGES: ImageDialect = {
  size: "ratio",
  ratios: XAI_RATIOS,
  drop: ["quality", "style", "background", "input_fidelity"],
  most: 10,
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
    unchecked: ["limits"],
    stability: "beta",
    base: "https://api.mistral.ai/v1",
    facts: {
      asOf: "2026-11-22",
      models: [
        embeds("mistral-embed"),
        embeds("codestral-embed"),
        judges("mistral-moderation-latest"),
        hears("voxtral-mini-latest"),
      ],
    },
    speaks: {
      "chat-completions": {
        ...plain,
        drop: [...but(), "stream_options", "logit_bias", "logprobs", "top_logprobs", "user"],
        // Usage comes with the last chunk, asked for or not.
        usage: "none",
        rename: { seed: "random_seed" },
        toolChoice: "any",
        toolIds: "alnum9",
        reasoning: {
          control: "effort",
          efforts: ["none", "low", "medium", "high", "max"],
          on: "high",
          echo: "thinking_parts",
        },
        models: [
          {
            of: ["mistral-small-*", "mistral-medium-*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "high"],
              on: "high",
              echo: "thinking_parts",
            },
          },
          {
            of: ["mistral-large-4*"],
            reasoning: {
              control: "effort",
              efforts: ["low", "medium", "high"],
              off: false,
              echo: "thinking_parts",
            },
          },
          {
            of: ["magistral-*"],
            reasoning: { control: "none", off: false, echo: "thinking_parts" },
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
        ids: false,
        drop: ["user", "truncate", "truncation"],
      },
      moderations: { texts: true },
      "mistral-fim": {},
      transcriptions: { formats: false, translates: false, drop: NOT_HEARD },
    },
  },
  {
    name: "deepseek",
    summary: "DeepSeek",
    limits: "none",
    errors: "openai",
    unchecked: ["completions", "limits"],
    stability: "beta",
    base: "https://api.deepseek.com",
    speaks: {
      "chat-completions": {
        ...plain,
        drop: [...but(), "parallel_tool_calls", "logit_bias", "seed", "user"],
        refuse: ["n"],
        reasoning: {
          control: "thinking.type",
          effortToo: true,
          efforts: ["low", "high", "max"],
          echo: "reasoning_content",
          echoRequired: true,
        },
        models: [
          {
            of: ["deepseek-v4-pro*"],
            reasoning: {
              control: "thinking.type",
              effortToo: true,
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
    unchecked: ["refused fields", "limits", "affinity"],
    base: "https://api.x.ai/v1",
    affinity: { field: "prompt_cache_key" },
    models: { images: ["grok-imagine-*", "grok-2-image*"] },
    speaks: {
      responses: { serves: ["grok-*"] },
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        strictTools: true,
        drop: [...but(), "presence_penalty", "frequency_penalty"],
        refuse: ["stop"],
        reasoning: {
          control: "effort",
          efforts: ["low", "medium", "high", "xhigh"],
          off: false,
          echo: "never",
        },
        models: [
          {
            of: ["grok-4.3*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "low", "medium", "high", "xhigh"],
              on: "medium",
              echo: "never",
            },
          },
        ],
      },
      images: { ...XAI_IMAGES, serves: ["grok-imagine-*", "grok-2-image*"] },
      "xai-edits": { ...XAI_IMAGES, serves: ["grok-imagine-*"] },
    },
  },
  {
    name: "perplexity",
    summary: "Perplexity",
    limits: "none",
    errors: "openai",
    unchecked: ["responses", "limits", "errors"],
    stability: "beta",
    base: "https://api.perplexity.ai",
    models: false,
    speaks: {
      "chat-completions": {
        ...plain,
        drop: [...but(), "parallel_tool_calls", "seed", "user", "logit_bias"],
        refuse: ["n", "tools", "logprobs"],
        webSearch: true,
        usage: "none",
        reasoningOutside: true,
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
    summary: "Cohere: chats by its compatibility API, embeddings and rankings by its own",
    limits: "none",
    errors: "message",
    unchecked: ["models", "limits"],
    base: "https://api.cohere.ai/compatibility/v1",
    models: { path: "../../v1/models?page_size=1000" },
    facts: {
      asOf: "2026-11-22",
      models: [embeds("embed-v4.0", "0.12"), ranks("rerank-v3.5", { searches: "0.002" })],
    },
    speaks: {
      "chat-completions": {
        ...plain,
        drop: [...but(), "parallel_tool_calls", "logit_bias", "user", "top_logprobs"],
        refuse: ["n"],
        reasoning: { control: "effort", efforts: ["none", "high"], on: "high", echo: "never" },
      },
      "cohere-embed": { base: "../../v2" },
      // It ranks texts and gives none back; the gateway does.
      rerank: { base: "../../v2", returns: false, texts: true, drop: ["user"] },
    },
  },
  {
    name: "voyage",
    summary: "Voyage AI",
    limits: "none",
    errors: "flat",
    unchecked: ["limits", "errors"],
    base: "https://api.voyageai.com/v1",
    models: false,
    facts: {
      asOf: "2026-11-22",
      models: [embeds("voyage-3.5", "0.06"), ranks("rerank-2.5", { input: "0.05" })],
    },
    speaks: {
      embeddings: {
        forms: ["base64"],
        dimensions: "output_dimension",
        task: { field: "input_type", words: { query: "query", document: "document" } },
        truncate: "truncation",
        ids: false,
        drop: ["user"],
      },
      "voyage-rerank": {},
    },
  },
  {
    name: "meta",
    summary: "Meta Model API",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "responses", "limits", "errors"],
    base: "https://api.meta.ai/v1",
    models: false,
    speaks: { responses: {} },
  },
  {
    name: "recraft",
    summary: "Recraft",
    limits: "none",
    errors: "openai",
    unchecked: ["limits", "errors"],
    base: "https://external.api.recraft.ai/v1",
    models: false,
    speaks: { images: { most: 6 } },
  },
];
