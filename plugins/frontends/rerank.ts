// Frontend for POST /v1/rerank and /v2/rerank, for Cohere's SDKs, Jina's clients, and compatible
// clients. Serves Voyage's format below /voyage.
import { defineFrontend } from "tollgate/plugin";
import { rerank, voyageRerank } from "tollgate/protocols/rerank";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { versionedPaths } from "./route-paths.ts";

export default defineFrontend({
  api: 1,
  name: "rerank",
  summary: "Serve reranking in the APIs of Cohere, Jina, and Voyage",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: rerank(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [...versionedPaths("/rerank"), "/v2/rerank", "/v1/v2/rerank"],
        actionType: "generate",
      },
      {
        method: "POST",
        path: "/voyage/v1/rerank",
        actionType: "generate",
        protocol: voyageRerank(),
      },
    ],
  }),
});
