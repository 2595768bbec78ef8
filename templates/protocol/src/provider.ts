import { apiKeySchema, defineProvider } from "tollgate/plugin";
import { protocol } from "./index.ts";

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Any server with Acme's protocol",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    required: ["base_url"],
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        "x-origin": true,
        description: "Base URL of the API",
      },
    },
  },
  setup: ({ base_url }) => ({
    endpoints: [
      {
        protocol: protocol(),
        base: base_url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
      },
    ],
  }),
});
