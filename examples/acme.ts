// examples/acme.ts
import { apiKeySchema, defineProvider, fail } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Acme, which speaks chat completions with a quirk",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        default: "https://api.acme.example/v1",
        "x-origin": true,
        description: "Where Acme listens",
      },
    },
  },
  setup: ({ base_url }) => ({
    endpoints: [
      {
        protocol: chatCompletions({ maxTokens: "max_tokens" }),
        base: base_url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        // The quirk: Acme refuses `user`, and wants the user in a header.
        prepare(out) {
          const user = out.get("user");
          if (typeof user === "string" && /^[\x21-\x7e]{1,64}$/.test(user))
            out.setHeader("x-acme-user", user);
          out.remove("user");
        },
      },
    ],
    async listModels(line) {
      const answer = await line.fetch("models");
      if (!answer.ok) fail("upstream", `Acme answered its list of models with ${answer.status}.`);
      const { data } = (await answer.json()) as { data: readonly { id: string }[] };
      return data.map(({ id }) => ({ model: id, operation: "chat" }));
    },
  }),
});
