// POST /v1/embeddings, for OpenAI's SDKs and whatever speaks like them; with /v1, without, or with it twice, since that is how
// base addresses are pasted.
import { defineFrontend } from "tollgate/plugin";
import { embeddings } from "tollgate/protocols/embeddings";
import { at, deployed, deployment, onAzure, unnamed } from "./paths.ts";
import { accept, presented } from "./presented.ts";

export default defineFrontend({
  api: 1,
  name: "embeddings",
  summary: "OpenAI's embeddings",
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
      { method: "POST", path: [...at("/embeddings"), ...onAzure("/embeddings")], op: "generate" },
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
