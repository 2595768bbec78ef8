// Any backend other than Anthropic that speaks the messages protocol: a vendor's `/anthropic`
// endpoint, a local server, or another gateway.
import { defineProvider, type ProviderClient, type ModelInfo } from "tollgate/plugin";
import {
  asPositiveCount,
  optionalKey,
  fetchListPage,
  asNonEmptyText,
} from "tollgate/protocols/compatible";
import { messages } from "tollgate/protocols/messages";

export default defineProvider({
  api: 1,
  name: "anthropic-compatible",
  summary: "Any API that speaks Anthropic messages",
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
        description: "Where the API is, with or without /v1",
      },
      auth: {
        enum: ["x-api-key", "bearer"],
        default: "x-api-key",
        description: "How the key is sent",
      },
      version: {
        type: "string",
        pattern: "^\\d{4}-\\d{2}-\\d{2}$",
        "x-expects": "a date such as 2023-06-01",
        default: "2023-06-01",
        description: "anthropic-version where the client names none",
      },
      thinking: {
        enum: ["adaptive", "always", "budget", "none"],
        default: "budget",
        description:
          "How its models are told to think: adaptive with an effort (always: cannot be switched off), enabled with a token budget, or not at all",
      },
      signed: {
        type: "boolean",
        default: false,
        description: "Thinking comes signed, and must come back so",
      },
      counts: {
        type: "boolean",
        default: false,
        description: "Answers /messages/count_tokens; otherwise counts are estimated",
      },
      betas: {
        type: "boolean",
        default: false,
        description: "Takes anthropic-beta; otherwise the header is not sent",
      },
      max_tokens: {
        type: "integer",
        minimum: 1,
        default: 8192,
        description: "The bound for requests that have none, where the model's own is not known",
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
    },
  },
  setup: (o, ctx) => ({
    endpoints: [
      {
        protocol: messages({
          // The backend signs its own reasoning. Its signatures are sent back only to this
          // provider.
          signer: ctx.id,
          acceptsUnsignedThinking: !o.signed,
          betas: o.betas,
          countsTokens: o.counts,
          thinking: o.thinking,
          maxTokens: o.max_tokens,
          dropFields: o.drop_fields,
        }),
        base: withVersion(o.base_url),
        auth:
          o.auth === "bearer"
            ? { header: "authorization", prefix: "Bearer ", field: "api_key" }
            : { header: "x-api-key", field: "api_key" },
        headers: { "anthropic-version": o.version },
      },
    ],
    ...(o.list_models && { listModels: fetchModelList }),
  }),
});

const withVersion = (base: string): string => {
  const bare = base.replace(/\/+$/, "");
  return /\/v\d+$/.test(bare) ? bare : `${bare}/v1`;
};

/**
 * Reads a model list in either of the two formats that such servers use. Only the IDs are common to
 * both.
 */
async function fetchModelList(line: ProviderClient): Promise<ModelInfo[]> {
  const { rows } = await fetchListPage(line, "models?limit=1000", { fields: ["data"] });
  return rows.flatMap((row) => {
    const model = asNonEmptyText(row["id"]);
    const name = asNonEmptyText(row["display_name"]);
    const limits = { context: asPositiveCount(row["max_model_len"]) };
    return model === undefined ? [] : [{ model, operation: "chat", name, limits }];
  });
}
