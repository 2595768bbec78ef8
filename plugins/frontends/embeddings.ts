// Embeddings: POST /v1/embeddings for OpenAI's SDKs and compatible clients, with /v1, without it, or with it twice, as base URLs
// are pasted. Voyage's clients use the same format below /voyage, and Cohere's call POST /v2/embed.
import { defineFrontend } from "tollgate/plugin";
import { cohereEmbeddings } from "tollgate/protocols/cohere";
import { embeddings } from "tollgate/protocols/embeddings";
import { at, deployed, deployment, onAzure, onGoogle, unnamed } from "./paths.ts";
import { accept, presented } from "./presented.ts";

export default defineFrontend({
  api: 1,
  name: "embeddings",
  summary: "OpenAI's, Voyage's and Cohere's embeddings",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: embeddings(),
    secret: (headers) => presented(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [
          ...at("/embeddings"),
          ...onAzure("/embeddings"),
          ...onGoogle("/embeddings"),
          "/voyage/v1/embeddings",
        ],
        op: "generate",
      },
      {
        method: "POST",
        path: ["/v2/embed", "/v1/v2/embed"],
        op: "generate",
        protocol: cohereEmbeddings(),
      },
      {
        method: "POST",
        path: deployed("/embeddings"),
        op: "generate",
        protocol: unnamed(embeddings()),
        read: deployment,
      },
    ],
  }),
});
