// examples/acme-signed.ts
import { defineProvider } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { signRequest } from "tollgate-provider-aws/signer";

export default defineProvider({
  api: 1,
  name: "acme-signed",
  summary: "Acme with AWS signatures (Signature Version 4)",
  credential: {
    type: "object",
    additionalProperties: false,
    required: ["access_key_id", "secret_access_key"],
    properties: {
      access_key_id: { type: "string", minLength: 1, description: "Access key ID" },
      secret_access_key: {
        type: "string",
        minLength: 1,
        "x-secret": true,
        description: "Secret access key",
      },
    },
  },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        default: "https://signed.acme.example/v1",
        "x-origin": true,
        description: "Base URL of the API",
      },
      region: { type: "string", default: "us-east-1", description: "Region in the signature" },
    },
  },
  setup: ({ base_url, region }) => ({
    endpoints: [
      {
        protocol: chatCompletions(),
        base: base_url,
        // Called for each attempt, with the URL, headers, and body that will be sent.
        auth: (request, { access_key_id, secret_access_key }) =>
          signRequest({ id: access_key_id, secret: secret_access_key }, request, {
            region,
            service: "acme",
            now: Date.now(),
          }),
      },
    ],
  }),
});
