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
  summary: "Any API that supports Anthropic messages",
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
        description: "Base URL of the API, with or without /v1",
      },
      auth: {
        enum: ["x-api-key", "bearer"],
        default: "x-api-key",
        description: "Header that carries the key",
      },
      version: {
        type: "string",
        pattern: "^\\d{4}-\\d{2}-\\d{2}$",
        "x-expects": "a date such as 2023-06-01",
        default: "2023-06-01",
        description: "anthropic-version for requests that do not set it",
      },
      thinking: {
        enum: ["adaptive", "always", "budget", "none"],
        default: "budget",
        description:
          "How reasoning is requested from the models: adaptive with an effort (always: it " +
          "cannot be disabled), enabled with a token budget, or not supported",
      },
      signed: {
        type: "boolean",
        default: false,
        description: "Whether reasoning is signed and its signatures must be returned",
      },
      counts: {
        type: "boolean",
        default: false,
        description: "Whether /messages/count_tokens is supported. If not, counts are estimated",
      },
      betas: {
        type: "boolean",
        default: false,
        description: "Whether the anthropic-beta header is supported. If not, it is not sent",
      },
      max_tokens: {
        type: "integer",
        minimum: 1,
        default: 8192,
        description: "Default max_tokens for models whose own limit is unknown",
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
    },
  },
  setup: (o, ctx) => ({
    endpoints: [
      {
        protocol: messages({
          // The backend signs its own reasoning. The signatures are sent back only to this
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
 * Reads a model list in either of the two formats of such servers. Both formats contain only the
 * IDs.
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
