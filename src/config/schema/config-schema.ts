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

const BOUNDS_SCHEMA = section("How much there may be of what clients and providers send", {
  in_flight: size(
    "Bodies and whole answers that one process holds at once; beyond it new requests get a 503",
    formatSize(BOUNDS.inFlight.max),
  ),
  json_values: maxCount("Values in the JSON of one request", BOUNDS.jsonValues.max),
  response: size(
    "An answer that is held whole or translated, pictures apart",
    formatSize(BOUNDS.response.max),
  ),
  connections: maxCount("Open connections of one process", BOUNDS.connections.max),
  connections_per_address: maxCount(
    "Of them, those of one address; raise it behind a proxy, which is one address",
    BOUNDS.connectionsPerAddress.max,
  ),
});

const OVERLOAD_SCHEMA = section("What happens when there is more to do than can be done", {
  max_concurrent: maxCount(
    "Calls of one process at once; it takes fewer by itself while its own work takes longer than usual",
    10_000,
  ),
  max_queue_wait: duration("How long a request may wait for its turn", "250ms"),
});

const TIMEOUTS_SCHEMA = section(
  "Of one call to a provider, and of a client that reads its answer",
  {
    ...timeouts(
      { connect: "5s", first_byte: "600s", idle: "300s", total: "3600s" },
      { quick: { first_byte: "60s" } },
    ),
    client_write: duration("How long a client may take nothing of its answer", "60s"),
  },
);

const SHUTDOWN_SCHEMA = {
  ...durationOr(
    duration("How long requests in flight may go on after a stop"),
    closedObject({
      announce: duration(
        "How long all are still served after a stop, while /readyz says 503; absent: 5s where /readyz has been asked",
      ),
      timeout: duration("How long requests in flight may go on when the port has closed"),
    }),
  ),
  default: "300s",
  description: "What a stop does, or how long requests in flight may go on after it",
};

const FILES_SCHEMA = section("Images that clients asked for by address", {
  lifetime: duration("How long an address is good; a week at most", "1h"),
  max_file: size("The largest that is kept", "64MiB"),
  max_key: size("Of those that one key asked for", "1GiB"),
  max_total: size("Of all together; beyond it no more are taken", "2GiB"),
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
    "x-expects":
      "a model's name: up to 256 printable characters, no space or quote, at most one star",
  },
  additionalProperties: routeSchema,
  default: {},
  description: "More names that clients may ask for. One star matches anything and is carried over",
};

const REQUEST_HISTORY_SCHEMA = {
  type: "integer",
  minimum: 0,
  maximum: 100_000,
  default: 10_000,
  description:
    "Requests that are over and that `tollgate request`, `tail` and `top` still know; 0: none, and nothing is counted",
};

const PLUGINS_SCHEMA = section("Packages that are not Tollgate's own", {
  lock: {
    enum: ["required", "warn", "off"],
    description:
      "Whether a package has to be what plugins.lock.yaml says, byte for byte. Absent: required where there is one",
  },
  allow: list(
    { type: "string", minLength: 1 },
    "Those that may be mounted at all, by their whole names. Absent: any",
    { uniqueItems: true },
  ),
});

const LEDGER_SCHEMA = section("Rows of the ledger", {
  retention: duration(
    "How long rows are kept; then sums stand for them. At least 1d; for good when it is absent",
  ),
});

const INCLUDE_SCHEMA = {
  type: ["string", "array"],
  items: { type: "string", minLength: 1 },
  minLength: 1,
  description:
    "More files: their top-level maps are joined with these by key. A star may stand in a file's name",
};

const RETRIES_SCHEMA = section("How often one request is tried, its first call counted", {
  per_target: attemptCount("Of one target; 1: none is asked twice", 2),
  total: attemptCount("Of all targets together", 3),
});

/** Schemas of incoming and outgoing connections. */
const NETWORK_SCHEMAS = { listen: LISTEN_SCHEMA, admin: ADMIN_SCHEMA, proxy: PROXY_SCHEMA };

const createConfigSchema = (facts: Schema) => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "gateway.yaml",
  ...closedObject({
    ...NETWORK_SCHEMAS,
    public_url: text("Where clients reach us, for addresses we hand out", {
      pattern: "^https?://",
      format: "uri",
      "x-expects": "an address such as https://llm.example",
    }),
    state_dir: text(
      "Keys, ledger, last good catalog. Relative to this file. A change needs a restart",
      { minLength: 1, default: "./.tollgate" },
    ),
    workers: {
      anyOf: [{ type: "integer", minimum: 1, maximum: 1024 }, { const: "auto" }],
      "x-expects": "a number of processes, or auto",
      default: 1,
      description: "Processes; auto: one per processor. A change needs a restart",
    },
    shutdown: SHUTDOWN_SCHEMA,
    allow_empty: flag("A reload may leave no provider where there were some", false),
    strict: flag("Refuse what another protocol cannot say in full, in place of a warning", false),
    response_headers: list(
      { enum: RESPONSE_HEADERS },
      "What answers say of the way that they came; it tells clients about the gateway",
      { uniqueItems: true, default: [] },
    ),
    timeouts: TIMEOUTS_SCHEMA,
    retries: RETRIES_SCHEMA,
    max_body: size("The largest request", formatSize(BOUNDS.body.max)),
    bounds: BOUNDS_SCHEMA,
    overload: OVERLOAD_SCHEMA,
    catalog: section("What providers say that they have", {
      refresh: duration("How often they are asked", "10m"),
    }),
    files: FILES_SCHEMA,
    request_history: REQUEST_HISTORY_SCHEMA,
    plugins: PLUGINS_SCHEMA,
    log: section("What the gateway writes about itself", {
      level: {
        enum: ["debug", "info", "warn", "error"],
        default: "info",
        description: "The least that is worth a line",
      },
      slow_request: duration("A request that waits longer for its first byte gets a line", "10s"),
    }),
    ledger: LEDGER_SCHEMA,
    store: {
      ...nameOrObject(pluginSchema),
      default: "sqlite",
      description: "Keys, ledger and limits. A change needs a restart",
    },
    frontends: list(nameOrObject(pluginSchema), "What is served", { default: DEFAULT_FRONTENDS }),
    middleware: list(nameOrObject(middlewareSchema), "What every request passes, in this order", {
      default: DEFAULT_MIDDLEWARE,
    }),
    observers: list(
      nameOrObject(pluginSchema),
      "What is told of all that happened, and changes nothing",
      {
        default: [],
      },
    ),
    providers: {
      type: "object",
      propertyNames: name("a provider's key"),
      additionalProperties: nameOrObject(createProviderSchema(facts)),
      default: {},
      description:
        "The services that answer. A key is what stands before the first / of a model's name",
    },
    accounts: {
      type: "object",
      propertyNames: name("an account's key"),
      additionalProperties: ACCOUNT_SCHEMA,
      default: {},
      description: "What several keys share: limits, what they may use, labels",
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
