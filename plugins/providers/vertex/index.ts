// Google Cloud's Vertex AI: Gemini, Claude, and models of other publishers through the chat
// completions endpoint.
import {
  defineProvider,
  type Facts,
  type CallContext,
  type ClientHalf,
  type JsonObject,
  type Outgoing,
  type Protocol,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { accountSchema, vertexAuth } from "./auth.ts";
import { claudeLines, geminiLines, vertexBatches, type VertexLineFormat } from "./batches.ts";
import {
  isEmbeddingModel,
  hostOf,
  isClaude,
  isGemini,
  isPartner,
  modelUrl,
  bareName,
} from "./locations.ts";
import { vertexEmbeddings } from "./embeddings.ts";
import { gemini } from "tollgate/protocols/gemini";
import { valueFields } from "tollgate/protocols/references";
import { claude, messages } from "tollgate/protocols/messages";

// Models that can be called only if they are listed: the text embedding models in Google's
// documentation
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
  unverified: ["partners' models", "express keys", "vectors", "batches"],
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
      batch_uri: {
        type: "string",
        pattern: "^gs://[a-z0-9._-]+(/[\\w./-]*)?$",
        "x-expects": "a location such as gs://my-bucket/tollgate",
        description:
          "Cloud Storage bucket and prefix for the lines and results of batches. If unset, no " +
          "batches are run",
      },
      storage_url: {
        type: "string",
        minLength: 1,
        default: "https://storage.googleapis.com",
        "x-origin": true,
        description: "Base URL of Cloud Storage",
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
  setup(
    { project: configuredProject, location, version, base_url, token_url, batch_uri, storage_url },
    ctx,
  ) {
    const project = configuredProject ?? ctx.env("GOOGLE_CLOUD_PROJECT");
    const auth = vertexAuth(ctx, token_url);
    const host = `${(base_url ?? hostOf(location)).replace(/\/+$/, "")}/${version}`;
    const placed = `${host}/projects/${project}/locations/${location}`;
    const storage = storage_url.replace(/\/+$/, "");
    const batchesOf = (format: VertexLineFormat) =>
      batch_uri !== undefined && { batches: vertexBatches({ storage, uri: batch_uri, format }) };
    // Without a project, only an express key works, and it can call only Gemini.
    if (project === undefined)
      return { endpoints: [{ protocol: vertexGemini(), base: host, auth, servesModel: isGemini }] };
    return {
      endpoints: [
        {
          protocol: vertexGemini(),
          base: placed,
          auth,
          servesModel: isGemini,
          ...batchesOf(geminiLines),
        },
        {
          protocol: vertexEmbeddings(),
          base: placed,
          auth,
          streaming: "never",
          servesModel: isEmbeddingModel,
        },
        {
          protocol: vertexClaude(),
          base: placed,
          auth,
          servesModel: isClaude,
          ...batchesOf(claudeLines),
        },
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

// Gemini on Vertex: the gemini protocol, with models under their publisher in the URL.

function vertexGemini(): Protocol<"chat"> {
  const own = gemini();
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    client: {
      ...client,
      paths: {
        generate: (of) =>
          modelUrl(
            "google",
            of.model,
            of.stream ? "streamGenerateContent?alt=sse" : "generateContent",
          ),
        count: (of) => modelUrl("google", of.model, "countTokens"),
      },
      prepare(out, of) {
        client.prepare?.(out, of);
        if (of.actionType === "count") adaptCountRequest(out);
        for (const field of ["serviceTier", "store"]) dropField(out, of, field);
      },
    },
  };
}

/**
 * Converts a token count request. Vertex expects the fields at the top level, and only the fields
 * that are counted.
 */
function adaptCountRequest(out: Outgoing): void {
  const inner = out.get("generateContentRequest") as JsonObject | undefined;
  if (inner === undefined) return;
  out.remove("generateContentRequest");
  for (const field of ["contents", "systemInstruction", "tools", "generationConfig"])
    if (inner[field] !== undefined) out.set(field, inner[field]);
}

/** Drops a field of Google's other API that Vertex rejects. */
function dropField(out: Outgoing, of: CallContext, field: string): void {
  if (out.get(field) === undefined) return;
  out.remove(field);
  of.reportLoss(field, "dropped");
}

// Claude on Vertex: the messages protocol, with the model in the URL and the version in the body.
// Streams are the same as Anthropic's.

/** The first API version of Vertex. If a client requests a newer date, that version is used. */
const VERSION = "vertex-2023-10-16";
/** Anthropic's first API version, which clients sent for years. Vertex has another name for it. */
const FIRST_ANTHROPIC_VERSION = "2023-06-01";

function vertexClaude(): Protocol<"chat"> {
  const own = messages(claude);
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    headers: { ...own.headers, request: ["anthropic-version", "anthropic-beta"] },
    zdrAllowedFields: [...own.zdrAllowedFields!, ["its version", valueFields("anthropic_version")]],
    client: {
      ...client,
      paths: {
        generate: (of) =>
          modelUrl("anthropic", of.model, of.stream ? "streamRawPredict" : "rawPredict"),
        count: modelUrl("anthropic", "count-tokens", "rawPredict"),
      },
      encodeRequest: (r, of) => client.encodeRequest(r, withAnthropicName(of)),
      prepare(out, of) {
        client.prepare?.(out, withAnthropicName(of));
        moveHeadersToBody(out, of);
      },
      mayHideReasoning: (out, of) => client.mayHideReasoning!(out, withAnthropicName(of)),
    },
  };
}

/** Returns the same call with the model's Anthropic name, for which its capabilities are known. */
const withAnthropicName = (of: CallContext): CallContext => ({
  actionType: of.actionType,
  action: of.action,
  model: bareName(of.model).replace("@", "-"),
  info: of.info,
  stream: of.stream,
  params: of.params,
  query: of.query,
  stateMode: of.stateMode,
  reportLoss: (field, how, code) => of.reportLoss(field, how, code),
});

function moveHeadersToBody(out: Outgoing, of: CallContext): void {
  // Token counting has one URL for all models, and the model is in the body.
  if (of.actionType === "count") out.set("model", bareName(of.model));
  else out.remove("model");
  const versionHeader = out.headers["anthropic-version"];
  if (out.get("anthropic_version") === undefined)
    out.set(
      "anthropic_version",
      versionHeader !== undefined && versionHeader > FIRST_ANTHROPIC_VERSION
        ? versionHeader
        : VERSION,
    );
  out.setHeader("anthropic-version");
}
