// tollgate/protocols/compatible: builds provider plugins from rows of data. A provider that speaks
// known protocols is described by a row, and `fromRow` creates its plugin. The module uses only the
// public contract and the codecs next to it, so rows of third parties work like built-in rows. May
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
  type FeatureSupport,
  type DataPolicy,
  type Facts,
  type Stability,
  type VideoEndpoint,
} from "../../plugin/index.ts";
import { matchesGlob } from "../../lib/glob.ts";
import { type BatchDialect, openAiBatches } from "../batches/index.ts";
import { fetchModelList, type ModelListFormat } from "./model-list.ts";
import { chatCompletions, type ChatDialect } from "../chat-completions/index.ts";
import { cohereEmbeddings } from "../cohere/index.ts";
import { completions, mistralFim } from "../completions/index.ts";
import { embeddings } from "../embeddings/index.ts";
import { images, xaiImageEdits } from "../images/index.ts";
import { messages, type MessagesDialect } from "../messages/index.ts";
import { moderations } from "../moderations/index.ts";
import { ollamaCompletions, ollamaEmbeddings } from "../ollama/index.ts";
import { CALL_PATHS, realtime, realtimePath } from "../realtime/index.ts";
import { rerank, voyageRerank } from "../rerank/index.ts";
import { openAiBackground, responses, type ResponsesDialect } from "../responses/index.ts";
import { speech } from "../speech/index.ts";
import { transcriptions } from "../transcriptions/index.ts";
import { openAiVideos, type VideoDialect } from "../videos/index.ts";

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
  return [...protocolEndpointsOf(row, base), ...videoEndpointsOf(row, base)];
}

/** Returns the authentication of a row: its own header, or a bearer token. */
const authOf = ({ auth }: ProviderRow) =>
  auth
    ? ({ ...auth, field: "api_key" } as const)
    : ({ header: "authorization", prefix: "Bearer ", field: "api_key" } as const);

function videoEndpointsOf(row: ProviderRow, base: string): VideoEndpoint<{ api_key?: string }>[] {
  if (!row.videos) return [];
  const { servedModels, dataPolicy, ...dialect } = row.videos;
  return [
    {
      operation: "video",
      base,
      auth: authOf(row),
      ...(row.headers && { headers: row.headers }),
      servesModel: (model) => servedModels.some((pattern) => matchesGlob(pattern, model)),
      ...(dataPolicy && { dataPolicy }),
      videos: openAiVideos(dialect),
    },
  ];
}

function protocolEndpointsOf(
  row: ProviderRow,
  base: string,
): ProtocolEndpoint<{ api_key?: string }>[] {
  return (Object.keys(row.protocols) as ProtocolName[]).flatMap((id) => {
    const {
      base: own,
      header,
      headers,
      servedModels,
      streams,
      calls,
      socket,
      ...dialect
    } = row.protocols[id] as EndpointRow & object;
    const foreign = own !== undefined && /^https?:/.test(own);
    if (foreign && base !== normalizeBaseUrl(row.base ?? base, row.base)) return [];
    const all: HeadersOut = { ...VERSION_HEADERS[id], ...row.headers, ...headers };
    const protocol = createProtocol(id, dialect, row);
    const { name, generatesTokens } = protocol.operationSpec;
    const streaming =
      streams ?? (generatesTokens || AUDIO_OPERATIONS.has(name) ? "on_request" : "never");
    return [
      {
        protocol,
        base: own === undefined ? base : joinBaseUrl(base, own),
        auth: header !== undefined ? { header, field: "api_key" } : authOf(row),
        ...(Object.keys(all).length > 0 && { headers: all }),
        ...(servedModels && {
          servesModel: (model: string) =>
            servedModels.some((pattern) => matchesGlob(pattern, model)),
        }),
        ...(streaming !== "on_request" && { streaming }),
        ...(OPERATION_PATHS[id] && { paths: OPERATION_PATHS[id] }),
        ...(id === "realtime" && {
          sockets: { realtime: { path: realtimePath, ...(calls && { calls: CALL_PATHS }) } },
        }),
        ...(socket !== undefined && { sockets: { generate: { path: socket } } }),
        ...(row.sessionAffinity && generatesTokens && { sessionAffinity: row.sessionAffinity }),
        ...(row.can && { can: row.can }),
        ...(row.batches?.protocols.includes(id) && { batches: openAiBatches(row.batches) }),
        ...(id === "responses" && row.background && { background: openAiBackground() }),
      },
    ];
  });
}

/** Creates a protocol of a row. */
const createProtocol = (id: ProtocolName, dialect: object, row: ProviderRow): Protocol => {
  const create = PROTOCOLS[id] as unknown as (dialect: object, row: ProviderRow) => Protocol;
  return create(dialect, row);
};

/**
 * Operations whose audio, or whose transcript of audio, is streamed. Operations that generate
 * tokens stream too, and all others return one piece.
 */
const AUDIO_OPERATIONS: ReadonlySet<string> = new Set<Operation>(["speech", "transcript"]);

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
export const operationsOf = (row: ProviderRow): ReadonlySet<Operation> =>
  new Set([
    ...(Object.keys(row.protocols) as ProtocolName[]).map(
      (id) => createProtocol(id, row.protocols[id] ?? {}, row).operationSpec.name,
    ),
    ...(row.videos ? (["video"] as const) : []),
  ]);

/** Version headers of protocols that reject requests without one. */
const VERSION_HEADERS: { readonly [id in ProtocolName]?: HeadersOut } = {
  messages: { "anthropic-version": "2023-06-01" },
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

// Describes a provider as data: its name, address, protocols, and differences. A row contains no
// code, so adding a provider means adding an entry to a list.

/** Members of a row that its protocols depend on. */
type RowFacts = {
  readonly name: string;
  readonly protocols: { readonly "chat-completions"?: ChatDialect };
};

/**
 * The protocols that a row can use, each with the function that creates it from its dialect. The
 * type of a row is derived from this list.
 */
const PROTOCOLS = {
  "chat-completions": chatCompletions,
  responses: (dialect: ResponsesDialect, { protocols }: RowFacts) =>
    responses({ chatDialect: protocols["chat-completions"] ?? {}, ...dialect }),
  // A compatible provider signs its own proofs, so they are sent back only to it. Betas and token
  // counting belong to Anthropic's API and are off unless the row enables them.
  messages: (dialect: MessagesDialect, { name }: RowFacts) =>
    messages({
      signer: name,
      acceptsUnsignedThinking: true,
      betas: false,
      countsTokens: false,
      ...dialect,
    }),
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
  realtime,
};

type ProtocolName = keyof typeof PROTOCOLS;

type DialectOf<Create extends (...of: never) => unknown> =
  Parameters<Create> extends readonly [(infer Dialect)?, ...unknown[]]
    ? NonNullable<Dialect>
    : never;

/** Settings of one protocol that differ from the rest of the row. */
export interface EndpointRow {
  /**
   * Base URL. Relative to the row's base, for example "../anthropic/v1", or absolute if it begins
   * with https://.
   */
  base?: string;
  /** Name of the header that contains the bare key. Default: the row's `auth`. */
  header?: string;
  /** Headers that are sent with every request to this endpoint. */
  headers?: HeadersOut;
  /**
   * Models that this endpoint serves. A pattern may contain one `*`, which matches any text.
   * Default: all models.
   */
  servedModels?: readonly string[];
  /**
   * Whether the endpoint streams. Default: `on_request`, or `never` for images, which hardly any
   * backend streams, and for other operations that return one piece.
   */
  streams?: "on_request" | "always" | "never";
  /** Whether the endpoint sets up calls over WebRTC. Default: false. */
  calls?: true;
  /**
   * Path of the WebSocket over which requests are sent. Default: requests are sent over HTTP only.
   */
  socket?: string;
}

export interface ProviderRow {
  /** Name that `use:` refers to, in lower case with dashes. */
  name: string;
  summary: string;
  /** Base URL without the protocol's own path. If unset, the operator must set `base_url`. */
  base?: string;
  /**
   * Protocols of the provider. If a request has to be translated, earlier protocols are preferred.
   */
  protocols: { [id in ProtocolName]?: DialectOf<(typeof PROTOCOLS)[id]> & EndpointRow };
  /**
   * Header that contains the key, and the text before the key. Default: `Authorization: Bearer`.
   */
  auth?: { header: string; prefix?: string };
  /**
   * Whether a key is required. `optional`: a self-hosted server may not require one. Default:
   * `required`.
   */
  keyRequirement?: "required" | "optional";
  headers?: HeadersOut;
  /**
   * Body field, header, or both that identify the conversation of a request, on every endpoint that
   * generates text token by token.
   */
  sessionAffinity?: ProtocolEndpoint["sessionAffinity"];
  /**
   * Format of the model list. false: the provider has none. Default: OpenAI's format at `models`.
   */
  models?: ModelListFormat | false;
  can?: FeatureSupport;
  /** Batches, and the protocols of their requests. Default: the provider has none. */
  batches?: BatchDialect & { readonly protocols: readonly ProtocolName[] };
  /** Whether the responses protocol has a background mode. Default: it has none. */
  background?: boolean;
  /**
   * Videos in the format of OpenAI, and the models that generate them. A pattern may contain one
   * `*`, which matches any text. Default: the provider has none.
   */
  videos?: VideoDialect & {
    readonly servedModels: readonly string[];
    readonly dataPolicy?: Partial<DataPolicy>;
  };
  dataPolicy?: DataPolicy;
  facts?: Facts;
  /**
   * Default: `experimental`, which means that the row was written from documentation and not
   * tested.
   */
  stability?: Stability;
  /**
   * Parts of the row that rely on second-hand information, for example "responses" or "limits".
   * Default: none, all parts come from the provider's documentation.
   */
  unverified?: readonly string[];
}
