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

const HTTP_URL = {
  type: "string",
  pattern: "^https?://",
  "x-expects": "an address such as https://login.example.com",
  "x-origin": true,
} as const;

/** How the gateway identifies itself to a server. */
const AUTH_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["type"],
  description: "Credential for the server. Default: none. A client's key is never sent",
  properties: {
    type: {
      enum: ["none", "token", "client_credentials", "token_exchange", "user"],
      description:
        "none. token: a fixed token. client_credentials: a token of an authorization server, which all clients share. token_exchange: the client's token is exchanged for one of the server (RFC 8693). user: each user connects an own account",
    },
    token: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Token. Required for the type token",
    },
    header: {
      type: "string",
      pattern: "^[A-Za-z][A-Za-z0-9-]{0,63}$",
      "x-expects": "the name of a header, such as x-api-key",
      description:
        "Header of the token, for the type token. Default: authorization, with the scheme Bearer",
    },
    issuer: {
      ...HTTP_URL,
      description:
        "Issuer of the tokens. Its metadata contains the endpoints. Default for the type user: the issuer that the server names",
    },
    token_url: {
      ...HTTP_URL,
      description: "Token endpoint, as an alternative to issuer. Not for the type user",
    },
    client_id: {
      type: "string",
      minLength: 1,
      description:
        "ID of the gateway at the issuer. Default for the type user: the gateway registers itself (RFC 7591)",
    },
    client_secret: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description:
        "Secret of the gateway at the issuer. Requires issuer or token_url. Default: none",
    },
    scopes: {
      type: "array",
      items: {
        type: "string",
        pattern: "^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$",
        "x-expects": "a scope",
      },
      description: "Scopes that are requested. Default: those that the server names",
    },
    audience: {
      type: "string",
      minLength: 1,
      description: "Audience of the token, for the type token_exchange. Default: none",
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
    accounts: toolPatterns(
      "IDs of accounts. The condition applies to their keys and to the keys of accounts under them. Default: all",
    ),
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

/** The frontend as an OAuth resource server. */
const AUTHORIZATION_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["resource", "servers"],
  description:
    "Tells clients where to get a token. The middleware jwt validates the tokens. Default: clients use API keys",
  properties: {
    resource: {
      type: "string",
      pattern: "^https?://[^?#]+$",
      "x-expects": "an address such as https://gateway.example.com",
      description:
        "Public URL of the gateway, without /mcp. A token is accepted if its audience is this URL or a path under it that contains the request's path",
    },
    servers: {
      type: "array",
      minItems: 1,
      items: { type: "string", pattern: "^https?://", "x-expects": "the URL of an issuer" },
      description: "Issuers of the tokens",
    },
    scopes: {
      type: "object",
      additionalProperties: toolPatterns("Tools as <server>/<tool>. A * matches any text"),
      description:
        "Tools that a scope permits, by scope. A token without a scope of a tool cannot use the tool. Default: scopes restrict nothing",
    },
  },
} as const;

/** Connections of users to servers. */
const CONNECTIONS_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["admin_url"],
  description: "Required for servers with auth of the type user",
  properties: {
    admin_url: {
      type: "string",
      pattern: "^https?://[^?#]+$",
      "x-expects": "an address such as https://admin.example.com",
      description:
        "URL of the admin listener, as browsers see it. Users connect their accounts at /mcp/connect",
    },
    encryption_keys: {
      type: "array",
      minItems: 1,
      items: { type: "string", minLength: 1, "x-secret": true },
      description:
        "Secrets of at least 32 characters that encrypt the credentials of users. The first one encrypts, and all of them decrypt, so a new key can be put first. Default: a secret in the store",
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
    authorization: AUTHORIZATION_SCHEMA,
    connections: CONNECTIONS_SCHEMA,
    list_ttl_s: {
      type: "integer",
      minimum: 1,
      maximum: 86_400,
      default: 60,
      description: "How long lists of a server are cached that state no time, in seconds",
    },
    list_timeout_s: {
      type: "integer",
      minimum: 1,
      maximum: 60,
      default: 10,
      description:
        "Maximum time that clients wait for a list of a server, in seconds. After that, they receive the lists of the other servers",
    },
  },
} as const;
