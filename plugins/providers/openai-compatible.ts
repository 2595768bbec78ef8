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

export default defineProvider({
  api: 1,
  name: "openai-compatible",
  summary: "Any API that speaks OpenAI chat completions",
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
          "Where the API is, up to but without /chat/completions. An address without a path means /v1",
      },
      key_header: {
        type: "string",
        pattern: "^[A-Za-z0-9-]+$",
        description: "The header that carries the key, bare; absent: Authorization: Bearer",
      },
      responses: {
        type: "boolean",
        default: false,
        description: "It speaks /responses too",
      },
      max_tokens_field: {
        enum: ["max_tokens", "max_completion_tokens"],
        default: "max_tokens",
        description: "The one name of the output limit that it understands",
      },
      developer_role: {
        type: "boolean",
        default: false,
        description: "It knows the role developer; otherwise system is said",
      },
      strict_tools: {
        type: "boolean",
        default: false,
        description: "It knows strict on tools",
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
        description: "How its models are told to think; absent: the client's own words pass",
      },
      reasoning_echo: {
        enum: ["reasoning_content", "reasoning", "reasoning_details", "thinking_parts", "never"],
        description: "Where earlier reasoning goes back; absent: left as the client sent it",
      },
      think_tags: {
        type: "boolean",
        default: false,
        description: "Reasoning stands in the text, between <think> tags, before the answer",
      },
      stream_usage: {
        type: "boolean",
        default: true,
        description: "It knows stream_options.include_usage",
      },
      drop_fields: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: [],
        description: "Top-level fields that it answers with an error",
      },
      list_models: {
        type: "boolean",
        default: true,
        description: "Lists its models at GET /models",
      },
      images: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that draw, at /images/generations. A * stands for any text: "*flux*". Default: none',
      },
      embeddings: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that return vectors, at /embeddings. A * stands for any text: "*embed*". Default: none',
      },
      rerank: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that rank, at /rerank. A * stands for any text: "*rerank*". Default: none',
      },
      speech: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that speak, at /audio/speech. A * stands for any text: "tts*". Default: none',
      },
      speech_events: {
        type: "boolean",
        description:
          "Those models can send sound in events and tell their counts there: they are asked to. false: they cannot. Absent: what the client asks for is passed on",
      },
      transcriptions: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description:
          'Models that transcribe, at /audio/transcriptions and /audio/translations. A * stands for any text: "*whisper*". Default: none',
      },
      image_response_format: {
        enum: ["b64_json", "base64", "bytes", "url"],
        default: "b64_json",
        description:
          "How it is asked for an image's bytes: response_format b64_json or base64; bytes: not at all; url: it only has addresses",
      },
      image_edits: {
        type: "boolean",
        default: false,
        description: "It changes images that come along, at /images/edits, in a form",
      },
      image_streams: {
        type: "boolean",
        default: false,
        description:
          "Streams its images, with partial ones on the way; without it the gateway makes the stream and warns that partial_images is dropped",
      },
    },
  },
  setup(o, ctx) {
    const row: ProviderRow = {
      name: ctx.id,
      summary: "",
      keyRequirement: "optional",
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
          const { images, embeddings, speech, transcriptions } = o;
          const shape = {
            ...(images && { images }),
            ...(embeddings && { embeddings }),
            ...(speech && { speech }),
            ...(transcriptions && { transcriptions }),
          };
          return fetchModelList(line, shape, operationsOf(row));
        },
      }),
    };
  },
});
