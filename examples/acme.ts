// examples/acme.ts
import { apiKeySchema, defineProvider, fail } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Acme: chat completions with a quirk",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        default: "https://api.acme.example/v1",
        "x-origin": true,
        description: "Base URL of the API",
      },
    },
  },
  setup: ({ base_url }) => ({
    endpoints: [
      {
        protocol: chatCompletions({ maxTokens: "max_tokens" }),
        base: base_url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        // The quirk: Acme rejects the field `user` and expects the user in a header.
        prepare(out) {
          const user = out.get("user");
          if (typeof user === "string" && /^[\x21-\x7e]{1,64}$/.test(user))
            out.setHeader("x-acme-user", user);
          out.remove("user");
        },
      },
    ],
    async listModels(client) {
      const res = await client.fetch("models");
      if (!res.ok) fail("upstream", `Acme returned status ${res.status} for its model list.`);
      const { data } = (await res.json()) as { data: readonly { id: string }[] };
      return data.map(({ id }) => ({ model: id, operation: "chat" }));
    },
  }),
});
