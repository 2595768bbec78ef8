// The JSON Schema of gateway.yaml without the options of plugins. Each key has its default and a
// one-line description for editors. `x-expects` is the text that errors show instead of the rule.
import { ADMIN_SCHEMA } from "../sections/admin-config.ts";
import type { Schema } from "../schema-dialect.ts";
import { LISTEN_SCHEMA } from "../sections/listen-config.ts";
import { PROXY_SCHEMA } from "../sections/proxy-config.ts";
import { ACCOUNT_SCHEMA, KEY_DEFAULTS_SCHEMA } from "../sections/account-config.ts";
import { SCOPE_NAME_SCHEMA, SCOPE_SCHEMA } from "../sections/scope-config.ts";
import { VIEW_SCHEMA } from "../sections/view-config.ts";
import {
  middlewareSchema,
  nameOrObject,
  pluginSchema,
  createProviderSchema,
  routeSchema,
} from "./entry-schemas.ts";
import { CORE_OPTIONS, SHUTDOWN_OPTIONS } from "./core-options.ts";
import { OPERATION_FRONTENDS } from "../../model/operations/built-in-operations.ts";
import { FACTS_SCHEMA } from "../sections/model-facts.ts";
import {
  closedObject,
  duration,
  durationOr,
  optionalDuration,
  list,
  name,
  section,
  timeouts,
} from "../schema-builders.ts";

/**
 * The default frontends: the frontends of the operations, and the frontends that do not serve a
 * model.
 */
export const DEFAULT_FRONTENDS = [...OPERATION_FRONTENDS, "models", "usage"];
export const DEFAULT_MIDDLEWARE = ["auth", "zdr", "limits", "usage"];

const TIMEOUTS_SCHEMA = section(
  "Timeouts of one call to a provider, and of a client that reads the response",
  {
    ...timeouts(
      { connect: "5s", first_byte: "600s", idle: "300s", total: "3600s" },
      { quick: { first_byte: "60s" } },
    ),
    client_write: duration("Maximum time that a client may read nothing of its response", "60s"),
    client_ping: duration(
      "Time without content after which a client gets a ping in its event stream",
      "15s",
    ),
  },
);

const SHUTDOWN_SCHEMA = {
  ...durationOr(
    optionalDuration("Time for open requests to finish during a shutdown"),
    closedObject(SHUTDOWN_OPTIONS),
  ),
  default: SHUTDOWN_OPTIONS.timeout.default,
  description: "Graceful shutdown settings, or only the time for open requests to finish",
};

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

const INCLUDE_SCHEMA = {
  type: ["string", "array"],
  items: { type: "string", minLength: 1 },
  minLength: 1,
  description:
    "Additional config files, whose top-level maps are merged into this file by key. " +
    "A file name may contain *",
};

/** Schemas of incoming and outgoing connections. */
const NETWORK_SCHEMAS = { listen: LISTEN_SCHEMA, admin: ADMIN_SCHEMA, proxy: PROXY_SCHEMA };

const createConfigSchema = (facts: Schema) => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "gateway.yaml",
  ...closedObject({
    ...NETWORK_SCHEMAS,
    workers: {
      anyOf: [{ type: "integer", minimum: 1, maximum: 1024 }, { const: "auto" }],
      "x-expects": "a number of processes, or auto",
      default: 1,
      description:
        "Number of worker processes, or auto for one per processor. A change requires a restart",
    },
    shutdown: SHUTDOWN_SCHEMA,
    timeouts: TIMEOUTS_SCHEMA,
    ...CORE_OPTIONS,
    plugins: PLUGINS_SCHEMA,
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
    scopes: {
      type: "object",
      propertyNames: SCOPE_NAME_SCHEMA,
      additionalProperties: SCOPE_SCHEMA,
      default: {},
      description:
        "Limits of sessions, agents, end users, models, providers, and credentials, by name",
    },
    key_defaults: KEY_DEFAULTS_SCHEMA,
    views: {
      type: "object",
      propertyNames: name("a view's key"),
      additionalProperties: VIEW_SCHEMA,
      default: {},
      description: "Currencies and margins of invoices, by name",
    },
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
