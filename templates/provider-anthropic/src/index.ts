import { apiKeySchema, defineProvider } from "tollgate/plugin";
import { fetchModelList } from "tollgate/protocols/compatible";
import { messages } from "tollgate/protocols/messages";

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Acme, through Anthropic's Messages API",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        default: "https://api.acme.example/v1",
        "x-origin": true,
        description: "Base URL of the API",
      },
    },
  },
  setup: ({ base_url }) => ({
    endpoints: [
      {
        // Signatures of thinking blocks are valid only at Acme, so they are sent to no other provider.
        protocol: messages({
          signer: "acme",
          acceptsUnsignedThinking: true,
          betas: false,
          countsTokens: false,
        }),
        base: base_url,
        auth: { header: "x-api-key", field: "api_key" },
        headers: { "anthropic-version": "2023-06-01" },
      },
    ],
    listModels: (line) => fetchModelList(line, {}, new Set(["chat"])),
  }),
});
