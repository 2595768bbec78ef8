// Google Cloud's Vertex AI: Gemini, Claude, and models of other publishers through the chat
// completions endpoint.
import { defineProvider, type Facts } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { accountSchema, vertexAuth } from "./auth.ts";
import { vertexClaude } from "./claude.ts";
import { vertexGemini } from "./gemini.ts";
import { isEmbeddingModel, hostOf, isClaude, isGemini, isPartner } from "./locations.ts";
import { vertexEmbeddings } from "./embeddings.ts";

// Models that must be listed to be callable: the text embedding models in Google's documentation
// (cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api). Prices are
// omitted.
const facts: Facts = {
  asOf: "2026-11-24",
  models: [
    { model: "gemini-embedding-001", operation: "embedding" },
    { model: "text-embedding-005", operation: "embedding" },
    { model: "text-multilingual-embedding-002", operation: "embedding" },
  ],
};

export default defineProvider({
  api: 1,
  name: "vertex",
  summary: "Google Cloud Vertex AI: Gemini, Claude, and partner models",
  stability: "beta",
  unverified: ["partners' models", "express keys", "vectors"],
  credential: accountSchema,
  facts,
  needs: { env: ["GOOGLE_CLOUD_PROJECT"], metadata: true },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      project: {
        type: "string",
        minLength: 1,
        pattern: "^[a-z0-9:.-]+$",
        "x-expects": "the id of a project",
        description: "Project ID. Default: GOOGLE_CLOUD_PROJECT. Not needed for express keys",
      },
      location: {
        type: "string",
        pattern: "^[a-z0-9-]+$",
        "x-expects": "a location such as global, eu or europe-west4",
        default: "global",
        description: "Location of the models: global, us, eu, or a region",
      },
      version: {
        enum: ["v1", "v1beta1"],
        default: "v1",
        description: "API version",
      },
      base_url: {
        type: "string",
        minLength: 1,
        "x-origin": true,
        description: "Base URL without the version. Default: the endpoint of `location`",
      },
      token_url: {
        type: "string",
        minLength: 1,
        default: "https://oauth2.googleapis.com/token",
        "x-origin": true,
        description: "Token URL for service accounts",
      },
    },
  },
  setup({ project: said, location, version, base_url, token_url }, ctx) {
    const project = said ?? ctx.env("GOOGLE_CLOUD_PROJECT");
    const auth = vertexAuth(ctx, token_url);
    const host = `${(base_url ?? hostOf(location)).replace(/\/+$/, "")}/${version}`;
    const placed = `${host}/projects/${project}/locations/${location}`;
    // Without a project only an express key works, which can call only Gemini.
    if (project === undefined)
      return { endpoints: [{ protocol: vertexGemini(), base: host, auth, servesModel: isGemini }] };
    return {
      endpoints: [
        { protocol: vertexGemini(), base: placed, auth, servesModel: isGemini },
        {
          protocol: vertexEmbeddings(),
          base: placed,
          auth,
          streaming: "never",
          servesModel: isEmbeddingModel,
        },
        { protocol: vertexClaude(), base: placed, auth, servesModel: isClaude },
        {
          protocol: chatCompletions({ maxTokens: "max_tokens", developerRole: false }),
          base: `${placed}/endpoints/openapi`,
          auth,
          servesModel: isPartner,
        },
      ],
    };
  },
});
