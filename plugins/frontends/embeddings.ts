// Frontend for embeddings: POST /v1/embeddings for OpenAI's SDKs and compatible clients. Accepts
// paths with /v1, without it, or with it twice, because users configure base URLs of all these
// forms. Voyage's clients use the same format below /voyage, and Cohere's clients call POST
// /v2/embed.
import { defineFrontend } from "tollgate/plugin";
import { cohereEmbeddings } from "tollgate/protocols/cohere";
import { embeddings } from "tollgate/protocols/embeddings";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { azurePaths, deploymentRoute, googlePaths, versionedPaths } from "./route-paths.ts";

export default defineFrontend({
  api: 1,
  name: "embeddings",
  summary: "Serve embeddings in the APIs of OpenAI, Voyage, and Cohere",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: embeddings(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [
          ...versionedPaths("/embeddings"),
          ...azurePaths("/embeddings"),
          ...googlePaths("/embeddings"),
          "/voyage/v1/embeddings",
        ],
        actionType: "generate",
      },
      {
        method: "POST",
        path: ["/v2/embed", "/v1/v2/embed"],
        actionType: "generate",
        protocol: cohereEmbeddings(),
      },
      deploymentRoute("/embeddings", embeddings()),
    ],
  }),
});
