// The chat completions endpoint: what OpenAI's SDKs and nearly all other clients call.
import { defineFrontend } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { at, deployed, deployment, onAzure, onGoogle, unnamed } from "./paths.ts";
import { accept, presented } from "./presented.ts";

export default defineFrontend({
  api: 1,
  name: "chat-completions",
  summary: "OpenAI chat completions: POST /v1/chat/completions",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: chatCompletions(),
    secret: (headers) => presented(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [
          ...at("/chat/completions"),
          ...onAzure("/chat/completions"),
          ...onGoogle("/chat/completions"),
        ],
        op: "generate",
      },
      {
        method: "POST",
        path: deployed("/chat/completions"),
        op: "generate",
        protocol: unnamed(chatCompletions()),
        read: deployment,
      },
    ],
  }),
});
