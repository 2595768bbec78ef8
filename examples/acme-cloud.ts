// examples/acme-cloud.ts
import { createHash } from "node:crypto";
import { AccountTokens, defineProvider, fail } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";

/** A credential as the operator configures it. */
interface Account {
  readonly client_id: string;
  readonly client_secret: string;
}

export default defineProvider({
  api: 1,
  name: "acme-cloud",
  summary: "Acme in the cloud, with tokens that expire",
  credential: {
    type: "object",
    additionalProperties: false,
    required: ["client_id", "client_secret"],
    properties: {
      client_id: { type: "string", minLength: 1, description: "Client ID at Acme" },
      client_secret: {
        type: "string",
        minLength: 1,
        "x-secret": true,
        description: "Client secret",
      },
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
        description: "Base URL of the API and of its token endpoint",
      },
    },
  },
  setup({ base_url }, ctx) {
    const tokens = ctx.shared("tokens", () => new AccountTokens(Date.now));
    const fetchToken =
      ({ client_id, client_secret }: Account) =>
      async () => {
        const res = await ctx.fetch(`${base_url}/token`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ client_id, client_secret }),
        });
        if (!res.ok) fail("upstream_auth", `Acme rejected the token request (${res.status}).`);
        const { token, expires_in = 3600 } = (await res.json()) as {
          token: string;
          expires_in?: number;
        };
        return { token, ttlMs: expires_in * 1000 };
      };
    // The secret is part of the key, so that no token of the old secret is used after a change.
    const cacheKey = (account: Account) =>
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
              authorization: `Bearer ${await tokens.get(cacheKey(account), fetchToken(account))}`,
            }),
            async renewToken({ status }, account) {
              if (status !== 401) return false;
              await tokens.renew(cacheKey(account), fetchToken(account));
              return true;
            },
          },
        },
      ],
    };
  },
});
