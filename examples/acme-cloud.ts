// examples/acme-cloud.ts
import { createHash } from "node:crypto";
import { AccountTokens, defineProvider, fail } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";

/** One credential, as an operator writes it. */
interface Account {
  readonly client_id: string;
  readonly client_secret: string;
}

export default defineProvider({
  api: 1,
  name: "acme-cloud",
  summary: "Acme in the cloud, behind tokens that end",
  credential: {
    type: "object",
    additionalProperties: false,
    required: ["client_id", "client_secret"],
    properties: {
      client_id: { type: "string", minLength: 1, description: "The account's name at Acme" },
      client_secret: { type: "string", minLength: 1, "x-secret": true, description: "Its secret" },
    },
  },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        default: "https://cloud.acme.example",
        "x-origin": true,
        description: "Where Acme listens, and gives tokens",
      },
    },
  },
  setup({ base_url }, ctx) {
    const tokens = ctx.shared("tokens", () => new AccountTokens(Date.now));
    const mint =
      ({ client_id, client_secret }: Account) =>
      async () => {
        const answer = await ctx.fetch(`${base_url}/token`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ client_id, client_secret }),
        });
        if (!answer.ok) fail("upstream_auth", `Acme gave no token: ${answer.status}.`);
        const { token, expires_in = 3600 } = (await answer.json()) as {
          token: string;
          expires_in?: number;
        };
        return { token, ttlMs: expires_in * 1000 };
      };
    // By secret too: after a change of it nothing of the old one is used.
    const named = (account: Account) =>
      createHash("sha256")
        .update(JSON.stringify([base_url, account]))
        .digest("hex");
    return {
      endpoints: [
        {
          protocol: chatCompletions(),
          base: `${base_url}/v1`,
          auth: {
            sign: async (_request, account) => ({
              authorization: `Bearer ${await tokens.get(named(account), mint(account))}`,
            }),
            async renewToken({ status }, account) {
              if (status !== 401) return false;
              await tokens.renew(named(account), mint(account));
              return true;
            },
          },
        },
      ],
    };
  },
});
