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
import { matchesGlob } from "../../lib/glob.ts";
import { fetchModelList } from "./model-list.ts";
import {
  PROTOCOLS,
  type EndpointRow,
  type ProtocolName,
  type ProviderRow,
} from "./provider-row.ts";

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
      streams,
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
        ...(streaming !== "on_request" && { streaming }),
        ...(OPERATION_PATHS[id] && { paths: OPERATION_PATHS[id] }),
        ...(row.sessionAffinity && generatesTokens && { sessionAffinity: row.sessionAffinity }),
        ...(row.can && { can: row.can }),
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
  new Set(
    (Object.keys(row.protocols) as ProtocolName[]).map(
      (id) => createProtocol(id, row.protocols[id] ?? {}, row).operationSpec.name,
    ),
  );

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
