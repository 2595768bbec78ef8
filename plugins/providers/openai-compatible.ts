// Any backend without its own row that speaks OpenAI's chat completions, optionally with responses,
// images, embeddings, and audio.
import { defineProvider } from "tollgate/plugin";
import {
  endpointsOf,
  normalizeBaseUrl,
  operationsOf,
  fetchModelList,
  type ProviderRow,
  optionalKey,
} from "tollgate/protocols/compatible";

/** Protocols whose requests a batch can contain. */
const BATCH_PROTOCOLS = ["chat-completions", "responses", "embeddings"] as const;

export default defineProvider({
  api: 1,
  name: "openai-compatible",
  summary: "Any API that supports OpenAI chat completions",
  stability: "beta",
  credential: optionalKey,
  options: {
    type: "object",
    additionalProperties: false,
    required: ["base_url"],
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        description:
          "Base URL of the API, without /chat/completions. /v1 is appended to a URL " +
          "without a path",
      },
      key_header: {
        type: "string",
        pattern: "^[A-Za-z0-9-]+$",
        description:
          "Header that carries the key without a prefix. If unset, the key is sent as " +
          "Authorization: Bearer",
      },
      responses: {
        type: "boolean",
        default: false,
        description: "Whether /responses is supported",
      },
      background: {
        type: "boolean",
        default: false,
        description:
          "Whether /responses supports background: true, with polling and cancellation. Requires " +
          "responses",
      },
      max_tokens_field: {
        enum: ["max_tokens", "max_completion_tokens"],
        default: "max_tokens",
        description: "Field name of the output limit",
      },
      developer_role: {
        type: "boolean",
        default: false,
        description: "Whether the role developer is supported. If not, the role system is sent",
      },
      strict_tools: {
        type: "boolean",
        default: false,
        description: "Whether strict is supported in tools",
      },
      thinking: {
        enum: [
          "effort",
          "thinking.type",
          "enable_thinking",
          "chat_template_kwargs",
          "reasoning.enabled",
          "reasoning",
          "none",
        ],
        description:
          "How reasoning is requested from the models. If unset, the client's fields are " +
          "forwarded unchanged",
      },
      reasoning_echo: {
        enum: ["reasoning_content", "reasoning", "reasoning_details", "thinking_parts", "never"],
        description:
          "Field in which earlier reasoning is returned. If unset, it is forwarded unchanged",
      },
      think_tags: {
        type: "boolean",
        default: false,
        description:
          "Whether reasoning is part of the text, between <think> tags before the response",
      },
      stream_usage: {
        type: "boolean",
        default: true,
        description: "Whether stream_options.include_usage is supported",
      },
      drop_fields: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: [],
        description: "Top-level fields that the API rejects",
      },
      list_models: {
        type: "boolean",
        default: true,
        description: "Whether GET /models lists the models",
      },
      batches: {
        type: "boolean",
        default: false,
        description:
          "Whether the API runs batches at /files and /batches, in OpenAI's format, of all " +
          "requests that are sent as JSON",
      },
      images: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          "Models that create images, at /images/generations. A * matches any text: " +
          '"*flux*". Default: none',
      },
      embeddings: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that create embeddings, at /embeddings. A * matches any text: "*embed*". ' +
          "Default: none",
      },
      rerank: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that rerank, at /rerank. A * matches any text: "*rerank*". Default: none',
      },
      speech: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that create speech, at /audio/speech. A * matches any text: "tts*". ' +
          "Default: none",
      },
      speech_events: {
        type: "boolean",
        description:
          "Whether the speech models can stream audio as events with usage. true: the " +
          "gateway requests it. false: they cannot. If unset, the client's field is " +
          "forwarded",
      },
      transcriptions: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          "Models that transcribe, at /audio/transcriptions and /audio/translations. A * " +
          'matches any text: "*whisper*". Default: none',
      },
      videos: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that generate videos, at /videos. A * matches any text: "sora*". ' +
          "Default: none",
      },
      image_response_format: {
        enum: ["b64_json", "base64", "bytes", "url"],
        default: "b64_json",
        description:
          "How image data is requested: response_format (b64_json or base64), bytes (no " +
          "field needed), or url (the API returns only URLs)",
      },
      image_edits: {
        type: "boolean",
        default: false,
        description: "Whether image edits are supported, at /images/edits, as form data",
      },
      image_streams: {
        type: "boolean",
        default: false,
        description:
          "Whether images can be streamed with partial images. If not, the gateway creates " +
          "the stream and warns that partial_images is dropped",
      },
    },
  },
  setup(o, ctx) {
    const row: ProviderRow = {
      name: ctx.id,
      summary: "",
      keyRequirement: "optional",
      ...(o.background && { background: true }),
      ...(o.batches && { batches: { protocols: BATCH_PROTOCOLS } }),
      ...(o.videos && { videos: { servedModels: o.videos } }),
      ...(o.key_header !== undefined && { auth: { header: o.key_header } }),
      protocols: {
        "chat-completions": {
          maxTokens: o.max_tokens_field,
          developerRole: o.developer_role,
          strictTools: o.strict_tools,
          customTools: false,
          thinkTags: o.think_tags,
          streamUsage: o.stream_usage ? "include_usage" : "none",
          dropFields: o.drop_fields,
          ...((o.thinking ?? o.reasoning_echo) !== undefined && {
            reasoning: {
              ...(o.thinking !== undefined && { control: o.thinking }),
              ...(o.reasoning_echo !== undefined && { echo: o.reasoning_echo }),
            },
          }),
        },
        ...(o.responses && { responses: { dropFields: o.drop_fields } }),
        ...(o.images && {
          images: {
            edits: o.image_edits,
            responseFormat: o.image_response_format,
            servedModels: o.images,
            streams: o.image_streams ? "on_request" : "never",
          },
        }),
        ...(o.embeddings && { embeddings: { servedModels: o.embeddings } }),
        ...(o.rerank && { rerank: { servedModels: o.rerank } }),
        ...(o.speech && {
          speech: {
            servedModels: o.speech,
            ...(o.speech_events !== undefined && { events: o.speech_events ? ["*"] : [] }),
          },
        }),
        ...(o.transcriptions && { transcriptions: { servedModels: o.transcriptions } }),
      },
    };
    return {
      endpoints: endpointsOf(row, normalizeBaseUrl(o.base_url, undefined)),
      ...(o.list_models && {
        listModels: (line) => {
          const { images, embeddings, speech, transcriptions, videos } = o;
          const shape = {
            ...(images && { images }),
            ...(embeddings && { embeddings }),
            ...(speech && { speech }),
            ...(transcriptions && { transcriptions }),
            ...(videos && { videos }),
          };
          return fetchModelList(line, shape, operationsOf(row));
        },
      }),
    };
  },
});
