// Options of the frontend `mcp`.
import { REVISIONS } from "./revisions.ts";

const toolPatterns = (description: string) =>
  ({
    type: "array",
    items: { type: "string", minLength: 1, maxLength: 256 },
    description,
  }) as const;

const USD = {
  type: "string",
  pattern: "^\\d{1,6}(?:\\.\\d{1,9})?$",
  "x-expects": "an amount in US dollars as text, such as '0.005'",
} as const;

/** How the gateway identifies itself to a server. */
const AUTH_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["type"],
  description: "Credential for the server. Default: none. A client's key is never sent",
  properties: {
    type: { enum: ["none", "token"], description: "none, or token: a fixed bearer token" },
    token: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Bearer token. Required for the type token",
    },
  },
} as const;

const CONDITION_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["tools", "arguments"],
  properties: {
    tools: toolPatterns("Names of tools. A * matches any text"),
    keys: toolPatterns("IDs of the keys to which the condition applies. Default: all"),
    accounts: toolPatterns("IDs of accounts to whose keys the condition applies. Default: all"),
    arguments: {
      type: "object",
      additionalProperties: true,
      description: "JSON Schema that the arguments must match",
    },
  },
} as const;

/** An API with an OpenAPI document in place of an MCP server. */
const OPENAPI_SCHEMA = {
  type: "object",
  additionalProperties: false,
  description:
    "Offers operations of an HTTP API as tools. `url` is then the base URL of the API. Requires document or document_url",
  properties: {
    document: {
      type: "string",
      minLength: 1,
      "x-path": true,
      description: "File with the OpenAPI document, in YAML or JSON. Relative to gateway.yaml",
    },
    document_url: {
      type: "string",
      pattern: "^https?://",
      "x-expects": "an address such as https://api.example.com/openapi.json",
      "x-origin": true,
      description: "URL of the OpenAPI document, as an alternative to document",
    },
    operations: toolPatterns(
      "Operations that become tools: operation IDs, tag:<name>, or <METHOD> <path>. A * matches any text. Default: all",
    ),
    exclude: toolPatterns("Operations that are left out, in the same form"),
    max_response_bytes: {
      type: "integer",
      minimum: 1_024,
      maximum: 16_777_216,
      default: 1_048_576,
      description: "Maximum size of a response of the API, in bytes",
    },
  },
} as const;

/** Schema of one entry of `servers`. */
export const SERVER_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["url"],
  properties: {
    url: {
      type: "string",
      pattern: "^https?://",
      "x-expects": "an address such as https://mcp.example.com/mcp",
      "x-origin": true,
      description: "URL of the server. The gateway never sends requests to another origin",
    },
    revision: {
      enum: REVISIONS,
      description: "Revision of MCP that the server speaks. Default: the newest that it supports",
    },
    auth: AUTH_SCHEMA,
    openapi: OPENAPI_SCHEMA,
    tools: {
      type: "object",
      additionalProperties: false,
      description: "Tools of the server that the gateway offers. Default: all",
      properties: {
        allow: toolPatterns("Names of tools. A * matches any text. Default: all"),
        deny: toolPatterns("Names of tools that are never offered. A * matches any text"),
        pin: {
          type: "object",
          additionalProperties: { type: "string", pattern: "^[0-9a-f]{64}$" },
          description:
            "SHA-256 of approved tools, by name. A tool whose definition differs is not offered",
        },
        on_change: {
          enum: ["warn", "block"],
          default: "warn",
          description:
            "Reaction to a tool whose definition changes while the gateway runs. warn: reports it. block: also withdraws the tool",
        },
      },
    },
    prices: {
      type: "object",
      additionalProperties: USD,
      description:
        "Price of a call in US dollars, by the name of the tool. * applies to all other tools. Default: calls are free",
    },
    conditions: {
      type: "array",
      items: CONDITION_SCHEMA,
      description: "Conditions for the arguments of calls",
    },
    zero_retention: {
      type: "boolean",
      default: false,
      description:
        "Whether the server stores no content of calls. Requests that require zero data retention reach no other servers",
    },
    timeout_s: {
      type: "integer",
      minimum: 1,
      maximum: 3_600,
      default: 300,
      description: "Maximum time without data from the server, in seconds",
    },
  },
} as const;

/** Pattern of names of servers and sets. */
const NAME_PATTERN = "^[a-z][a-z0-9-]{0,30}$";

/** Schema of the options. */
export const MCP_OPTIONS = {
  type: "object",
  additionalProperties: false,
  properties: {
    servers: {
      type: "object",
      default: {},
      additionalProperties: SERVER_SCHEMA,
      propertyNames: { pattern: NAME_PATTERN },
      description: "Servers by name. Each is served at /mcp/<name>, and all of them at /mcp",
    },
    sets: {
      type: "object",
      additionalProperties: toolPatterns(
        "Tools as <server>/<tool>. A * matches any text. Each set is served at /mcp/<name>",
      ),
      propertyNames: { pattern: NAME_PATTERN },
      description: "Sets of tools by name",
    },
    list_ttl_s: {
      type: "integer",
      minimum: 1,
      maximum: 86_400,
      default: 60,
      description: "How long lists of a server are cached that state no time, in seconds",
    },
  },
} as const;
