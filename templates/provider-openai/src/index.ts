import { apiKeySchema, defineProvider } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { fetchModelList } from "tollgate/protocols/compatible";

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Acme, which speaks OpenAI's chat completions",
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
        description: "Where Acme listens",
      },
    },
  },
  setup: ({ base_url }) => ({
    endpoints: [
      {
        // What differs from OpenAI is said here: fields to drop or rename, how thinking is asked for.
        protocol: chatCompletions({ maxTokens: "max_tokens" }),
        base: base_url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
      },
    ],
    listModels: (line) => fetchModelList(line, {}, new Set(["chat"])),
  }),
});
