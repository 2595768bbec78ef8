// As it was written for Tollgate 0.1. Nothing here is changed: what api 1 promised to it is kept.
import { defineProvider, fail } from "tollgate/plugin";
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
    // By account. The promise is kept, and not the token: many requests at once fetch one.
    const tokens = new Map<string, Promise<string>>();
    const another = (account: Account) => {
      const { client_id, client_secret } = account;
      const fetching = ctx
        .fetch(`${base_url}/token`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ client_id, client_secret }),
        })
        .then(async (answer) => {
          if (!answer.ok) fail("upstream_auth", `Acme gave no token: ${answer.status}.`);
          return ((await answer.json()) as { token: string }).token;
        });
      tokens.set(client_id, fetching);
      // A failure is not kept: the next request asks again.
      fetching.catch(() => tokens.delete(client_id));
      return fetching;
    };
    return {
      endpoints: [
        {
          protocol: chatCompletions(),
          base: `${base_url}/v1`,
          auth: {
            sign: async (_request, account) => ({
              authorization: `Bearer ${await (tokens.get(account.client_id) ?? another(account))}`,
            }),
            async renewToken({ status }, account) {
              if (status !== 401) return false;
              await another(account);
              return true;
            },
          },
        },
      ],
    };
  },
});
