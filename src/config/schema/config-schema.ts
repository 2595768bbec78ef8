// The JSON Schema of gateway.yaml without the options of plugins. Each key has its default and a
// one-line description for editors. `x-expects` is the text that errors show in place of the rule.
import { ADMIN_SCHEMA } from "../sections/admin-config.ts";
import type { Schema } from "../schema-dialect.ts";
import { LISTEN_SCHEMA } from "../sections/listen-config.ts";
import { PROXY_SCHEMA } from "../sections/proxy-config.ts";
import { ACCOUNT_SCHEMA, KEY_DEFAULTS_SCHEMA } from "../sections/account-config.ts";
import {
  middlewareSchema,
  nameOrObject,
  pluginSchema,
  createProviderSchema,
  routeSchema,
} from "./entry-schemas.ts";
import { BOUNDS } from "../../lib/bounds.ts";
import { formatSize } from "../../lib/time/units.ts";
import { FACTS_SCHEMA } from "../sections/model-facts.ts";
import type { ResponseHeaderName } from "../gateway-config.ts";
import {
  closedObject,
  duration,
  durationOr,
  flag,
  list,
  name,
  section,
  size,
  text,
  timeouts,
  attemptCount,
  positiveInteger,
} from "../schema-builders.ts";

export const DEFAULT_FRONTENDS = [
  "chat-completions",
  "messages",
  "responses",
  "gemini",
  "images",
  "completions",
  "embeddings",
  "rerank",
  "moderations",
  "speech",
  "transcriptions",
  "models",
];
export const DEFAULT_MIDDLEWARE = ["auth", "zdr", "limits", "usage"];

const maxCount = (description: string, value: number) => ({
  ...positiveInteger(description),
  default: value,
});

const BOUNDS_SCHEMA = section("Size limits of data from clients and providers", {
  in_flight: size(
    "Request bodies and buffered responses that one process holds in memory at once. " +
      "Above this, new requests are rejected with status 503",
    formatSize(BOUNDS.inFlight.max),
  ),
  json_values: maxCount("Maximum number of JSON values in one request", BOUNDS.jsonValues.max),
  response: size(
    "Maximum size of a response that is buffered or translated, without images",
    formatSize(BOUNDS.response.max),
  ),
  connections: maxCount("Maximum number of open connections per process", BOUNDS.connections.max),
  connections_per_address: maxCount(
    "Maximum number of open connections per client address. Raise it behind a proxy, " +
      "because all clients then share one address",
    BOUNDS.connectionsPerAddress.max,
  ),
});

const OVERLOAD_SCHEMA = section("Overload protection", {
  max_concurrent: maxCount(
    "Maximum number of concurrent calls per process. The gateway lowers the limit " +
      "automatically while its own processing is slow",
    10_000,
  ),
  max_queue_wait: duration("Maximum time that a request waits in the queue", "250ms"),
});

const TIMEOUTS_SCHEMA = section(
  "Timeouts of one call to a provider, and of a client that reads the response",
  {
    ...timeouts(
      { connect: "5s", first_byte: "600s", idle: "300s", total: "3600s" },
      { quick: { first_byte: "60s" } },
    ),
    client_write: duration("Maximum time that a client may read nothing of its response", "60s"),
  },
);

const SHUTDOWN_SCHEMA = {
  ...durationOr(
    duration("Time for open requests to finish during a shutdown"),
    closedObject({
      announce: duration(
        "Time for which all requests are still served after a shutdown starts, while " +
          "/readyz returns 503. Default: 5s if /readyz has been requested, otherwise 0",
      ),
      timeout: duration("Time for open requests to finish after the port is closed"),
    }),
  ),
  default: "300s",
  description: "Graceful shutdown settings, or only the time for open requests to finish",
};

const FILES_SCHEMA = section("Generated images that clients requested as URLs", {
  lifetime: duration("Validity of an image URL. Maximum: 7 days", "1h"),
  max_file: size("Maximum size of one image", "64MiB"),
  max_key: size("Maximum total size of the images of one key", "1GiB"),
  max_total: size(
    "Maximum total size of all images. Above this, no more images are stored",
    "2GiB",
  ),
});

/** Headers that describe how a response was produced. */
const RESPONSE_HEADERS = [
  "server-timing",
  "x-tollgate-attempts",
  "x-tollgate-budget",
  "x-tollgate-cost",
  "x-tollgate-provider",
] as const satisfies readonly ResponseHeaderName[];

const MODELS_SCHEMA = {
  type: "object",
  propertyNames: {
    pattern: "^(?=[^*]*\\*?[^*]*$)[^\\s\"'\\u0000-\\u001f\\u007f]{1,256}$",
    "x-expects": "a model name: up to 256 printable characters, no spaces or quotes, at most one *",
  },
  additionalProperties: routeSchema,
  default: {},
  description:
    "Additional model names that clients may request. One * matches any text and is " +
    "inserted into the target name",
};

const REQUEST_HISTORY_SCHEMA = {
  type: "integer",
  minimum: 0,
  maximum: 100_000,
  default: 10_000,
  description:
    "Number of finished requests that the request history keeps for `tollgate " +
    "request`, `tail`, and `top`. 0 disables the history and the request statistics",
};

const PLUGINS_SCHEMA = section("Plugins from packages other than Tollgate's own", {
  lock: {
    enum: ["required", "warn", "off"],
    description:
      "Whether packages must match plugins.lock.yaml byte for byte. Default: required " +
      "if that file exists",
  },
  allow: list(
    { type: "string", minLength: 1 },
    "Full names of the packages that may be used. If unset, all packages are allowed",
    { uniqueItems: true },
  ),
});

const LEDGER_SCHEMA = section("Settings of the ledger", {
  retention: duration(
    "How long rows are kept before rollups replace them. Minimum: 1d. If unset, rows " +
      "are kept forever",
  ),
});

const INCLUDE_SCHEMA = {
  type: ["string", "array"],
  items: { type: "string", minLength: 1 },
  minLength: 1,
  description:
    "Additional config files, whose top-level maps are merged into this file by key. " +
    "A file name may contain *",
};

const RETRIES_SCHEMA = section("Maximum number of attempts per request, including the first call", {
  per_target: attemptCount(
    "Maximum number of attempts per target. 1 disables retries on the same target",
    2,
  ),
  total: attemptCount("Maximum number of attempts across all targets", 3),
});

/** Schemas of incoming and outgoing connections. */
const NETWORK_SCHEMAS = { listen: LISTEN_SCHEMA, admin: ADMIN_SCHEMA, proxy: PROXY_SCHEMA };

const createConfigSchema = (facts: Schema) => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "gateway.yaml",
  ...closedObject({
    ...NETWORK_SCHEMAS,
    public_url: text("Public base URL for the links that the gateway returns to clients", {
      pattern: "^https?://",
      format: "uri",
      "x-expects": "a URL such as https://llm.example",
    }),
    state_dir: text(
      "State directory with keys, the ledger, and the last valid catalog, relative to " +
        "this file. A change requires a restart",
      { minLength: 1, default: "./.tollgate" },
    ),
    workers: {
      anyOf: [{ type: "integer", minimum: 1, maximum: 1024 }, { const: "auto" }],
      "x-expects": "a number of processes, or auto",
      default: 1,
      description:
        "Number of worker processes, or auto for one per processor. A change requires a restart",
    },
    shutdown: SHUTDOWN_SCHEMA,
    allow_empty: flag("Whether a reload may remove all providers", false),
    strict: flag(
      "Whether to reject a request that cannot be translated exactly into another " +
        "protocol, instead of adding a warning",
      false,
    ),
    response_headers: list(
      { enum: RESPONSE_HEADERS },
      "Response headers with details of the call. They reveal information about the " +
        "gateway to clients",
      { uniqueItems: true, default: [] },
    ),
    timeouts: TIMEOUTS_SCHEMA,
    retries: RETRIES_SCHEMA,
    max_body: size("Maximum size of a request", formatSize(BOUNDS.body.max)),
    bounds: BOUNDS_SCHEMA,
    overload: OVERLOAD_SCHEMA,
    catalog: section("Refresh of the providers' model lists", {
      refresh: duration("Refresh interval", "10m"),
    }),
    files: FILES_SCHEMA,
    request_history: REQUEST_HISTORY_SCHEMA,
    plugins: PLUGINS_SCHEMA,
    log: section("Logging of the gateway", {
      level: {
        enum: ["debug", "info", "warn", "error"],
        default: "info",
        description: "Lowest level that is logged",
      },
      slow_request: duration(
        "Requests that wait longer than this for their first byte are logged",
        "10s",
      ),
    }),
    ledger: LEDGER_SCHEMA,
    store: {
      ...nameOrObject(pluginSchema),
      default: "sqlite",
      description: "Store for keys, the ledger, and limit usage. A change requires a restart",
    },
    frontends: list(
      nameOrObject(pluginSchema),
      "Frontends, each with its routes in one client protocol",
      { default: DEFAULT_FRONTENDS },
    ),
    middleware: list(
      nameOrObject(middlewareSchema),
      "Middleware that each request passes through, in this order",
      {
        default: DEFAULT_MIDDLEWARE,
      },
    ),
    observers: list(nameOrObject(pluginSchema), "Observers that receive records and events", {
      default: [],
    }),
    providers: {
      type: "object",
      propertyNames: name("a provider's key"),
      additionalProperties: nameOrObject(createProviderSchema(facts)),
      default: {},
      description: "Providers by key. The key is the part of a model name before the first /",
    },
    accounts: {
      type: "object",
      propertyNames: name("an account key"),
      additionalProperties: ACCOUNT_SCHEMA,
      default: {},
      description: "Limits, permissions, and labels that several keys share",
    },
    key_defaults: KEY_DEFAULTS_SCHEMA,
    models: MODELS_SCHEMA,
    include: INCLUDE_SCHEMA,
  }),
});

/**
 * Model metadata has many rules and few files use it, so it is validated separately where it
 * exists.
 */
export const CONFIG_SCHEMA = createConfigSchema({});

/** Schema for editors, which includes model metadata. */
export const EDITOR_CONFIG_SCHEMA = createConfigSchema(FACTS_SCHEMA);
