// tollgate/protocols/compatible: builds provider plugins from rows of data. A provider that speaks
// known protocols is described by a row, and `fromRow` creates its plugin. The module uses only the
// public contract and the codecs next to it, so rows of third parties work like built-in ones. May
// import: plugin, model, and the codecs of this layer.
import {
  defineProvider,
  type Branded,
  type Endpoint,
  type HeadersOut,
  type Operation,
  type ObjectSchema,
  type ProviderDef,
  type Protocol,
  type ProtocolEndpoint,
} from "../../plugin/index.ts";
import { chatCompletions } from "../chat-completions/index.ts";
import { cohereEmbeddings } from "../cohere/index.ts";
import { completions, mistralFim } from "../completions/index.ts";
import { embeddings } from "../embeddings/index.ts";
import { images, xaiImageEdits } from "../images/index.ts";
import { messages } from "../messages/index.ts";
import { moderations } from "../moderations/index.ts";
import { ollamaCompletions, ollamaEmbeddings } from "../ollama/index.ts";
import { rerank, voyageRerank } from "../rerank/index.ts";
import { responses } from "../responses/index.ts";
import { speech } from "../speech/index.ts";
import { transcriptions } from "../transcriptions/index.ts";
import { matchesGlob } from "../../lib/glob.ts";
import { fetchModelList } from "./model-list.ts";
import type { ProviderRow, EndpointRow } from "./provider-row.ts";

export type { ProviderRow, EndpointRow } from "./provider-row.ts";
export {
  fetchModelList,
  parseModelList,
  type ModelListFormat,
  asPositiveCount,
  type ListLocation,
  type ListPage,
  fetchListPage,
  asNonEmptyText,
} from "./model-list.ts";
export { asObject } from "../json-values.ts";

type ProtocolName = keyof ProviderRow["protocols"];

const REQUIRED = {
  type: "object",
  additionalProperties: false,
  required: ["api_key"],
  properties: {
    api_key: { type: "string", minLength: 1, "x-secret": true, description: "API key" },
  },
} as const;

/** Credential schema with an optional key, for servers that may not require one. */
export const optionalKey = {
  type: "object",
  additionalProperties: false,
  properties: {
    api_key: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "API key. If unset, requests are sent without a key.",
    },
  },
} as const;

/** Any provider definition. Its schemas describe its options and its credential. */
export type CompatibleProvider = ProviderDef<any, any> & Branded<"provider">;

export function fromRow(row: ProviderRow): CompatibleProvider {
  return defineProvider({
    api: 1,
    name: row.name,
    summary: row.summary,
    stability: row.stability ?? "experimental",
    ...(row.unverified && { unverified: row.unverified }),
    credential: row.keyRequirement === "optional" ? optionalKey : REQUIRED,
    options: optionsOf(row),
    ...(row.dataPolicy && { dataPolicy: row.dataPolicy }),
    ...(row.facts && { facts: row.facts }),
    setup: (options) => {
      const base = normalizeBaseUrl((options as { base_url: string }).base_url, row.base);
      return {
        endpoints: endpointsOf(row, base),
        ...(row.models !== false && {
          listModels: (line) => fetchModelList(line, row.models || {}, operationsOf(row)),
        }),
      };
    },
  });
}

function optionsOf(row: ProviderRow): ObjectSchema {
  const description = "Base URL of the API, without the protocol's own path";
  const base_url = { type: "string", minLength: 1, description } as const;
  const closed = { type: "object", additionalProperties: false } as const;
  return row.base === undefined
    ? { ...closed, required: ["base_url"], properties: { base_url } }
    : { ...closed, properties: { base_url: { ...base_url, default: row.base } } };
}

/**
 * Returns the endpoints of a provider that are reached from this base URL. If the operator changed
 * the base URL, endpoints with their own absolute URL are omitted, so that no key is sent to an
 * address that the operator did not choose.
 */
export function endpointsOf(row: ProviderRow, base: string): Endpoint<{ api_key?: string }>[] {
  return (Object.keys(row.protocols) as ProtocolName[]).flatMap((id) => {
    const {
      base: own,
      header,
      headers,
      servedModels,
      streams = TOKEN_STREAMED_PROTOCOLS.has(id) || AUDIO_STREAMED_PROTOCOLS.has(id)
        ? "on_request"
        : "never",
      ...dialect
    } = row.protocols[id] as EndpointRow & object;
    const foreign = own !== undefined && /^https?:/.test(own);
    if (foreign && base !== normalizeBaseUrl(row.base ?? base, row.base)) return [];
    const all: HeadersOut = { ...VERSION_HEADERS[id], ...row.headers, ...headers };
    return [
      {
        protocol: PROTOCOLS[id](dialect, row),
        base: own === undefined ? base : joinBaseUrl(base, own),
        auth:
          header !== undefined
            ? { header, field: "api_key" }
            : row.auth
              ? { ...row.auth, field: "api_key" }
              : { header: "authorization", prefix: "Bearer ", field: "api_key" },
        ...(Object.keys(all).length > 0 && { headers: all }),
        ...(servedModels && {
          servesModel: (model: string) =>
            servedModels.some((pattern) => matchesGlob(pattern, model)),
        }),
        ...(streams !== "on_request" && { streaming: streams }),
        ...(OPERATION_PATHS[id] && { paths: OPERATION_PATHS[id] }),
        ...(row.sessionAffinity &&
          TOKEN_STREAMED_PROTOCOLS.has(id) && { sessionAffinity: row.sessionAffinity }),
        ...(row.can && { can: row.can }),
      },
    ];
  });
}

/** Protocols whose responses are streamed token by token. */
const TOKEN_STREAMED_PROTOCOLS: ReadonlySet<ProtocolName> = new Set([
  "chat-completions",
  "messages",
  "responses",
  "completions",
  "mistral-fim",
  "ollama-generate",
]);

/**
 * Protocols whose audio, or whose transcript of audio, is streamed. All other protocols return one
 * piece.
 */
const AUDIO_STREAMED_PROTOCOLS: ReadonlySet<ProtocolName> = new Set(["speech", "transcriptions"]);

/**
 * Paths of protocols that serve only one action of an operation. Other actions use another
 * protocol.
 */
const OPERATION_PATHS: { readonly [id in ProtocolName]?: ProtocolEndpoint["paths"] } = {
  "xai-edits": { generate: undefined, edits: "/images/edits" },
};

/**
 * Returns the operations that the provider's endpoints support. A model list may contain models for
 * other operations.
 */
export const operationsOf = ({ protocols }: ProviderRow): ReadonlySet<Operation> =>
  new Set((Object.keys(protocols) as ProtocolName[]).map((id) => OPERATIONS[id] ?? "chat"));

const OPERATIONS: { readonly [id in ProtocolName]?: Operation } = {
  images: "image",
  "xai-edits": "image",
  embeddings: "embedding",
  "cohere-embed": "embedding",
  "ollama-embed": "embedding",
  rerank: "rerank",
  "voyage-rerank": "rerank",
  moderations: "moderation",
  completions: "completion",
  "mistral-fim": "completion",
  "ollama-generate": "completion",
  speech: "speech",
  transcriptions: "transcript",
};

/** Version headers of protocols that reject requests without one. */
const VERSION_HEADERS: { readonly [id in ProtocolName]?: HeadersOut } = {
  messages: { "anthropic-version": "2023-06-01" },
};

const PROTOCOLS: {
  readonly [id in ProtocolName]: (dialect: object, row: ProviderRow) => Protocol;
} = {
  "chat-completions": chatCompletions,
  responses: (dialect, row) =>
    responses({ chatDialect: row.protocols["chat-completions"] ?? {}, ...dialect }),
  images,
  "xai-edits": xaiImageEdits,
  embeddings,
  "cohere-embed": cohereEmbeddings,
  "ollama-embed": ollamaEmbeddings,
  rerank,
  "voyage-rerank": voyageRerank,
  moderations,
  completions,
  "mistral-fim": mistralFim,
  "ollama-generate": ollamaCompletions,
  speech,
  transcriptions,
  // A compatible provider signs its own proofs, so they are sent back only to it. Betas and token
  // counting belong to Anthropic's API and are off unless the row enables them.
  messages: (dialect, row) =>
    messages({
      signer: row.name,
      acceptsUnsignedThinking: true,
      betas: false,
      countsTokens: false,
      ...dialect,
    }),
};

/**
 * Returns a base URL without trailing slashes. If the operator omitted the path, the API's usual
 * path is added.
 */
export function normalizeBaseUrl(given: string, usual: string | undefined): string {
  const url = URL.parse(given);
  const path = usual === undefined ? "/v1" : new URL(usual).pathname;
  const whole = url?.pathname === "/" && !url.search ? url.origin + path : given;
  return whole.replace(/\/+$/, "");
}

const joinBaseUrl = (base: string, own: string): string =>
  new URL(own, `${base}/`).href.replace(/\/+$/, "");
