// The JSON Schema of gateway.yaml without anybody's options: every key of the gateway's own, its default and one line
// for whoever hovers over it. `x-expects` is what an error says in place of the rule.
import { ERRORS, type ErrorKind } from "../model/error.ts";
import { DURATION_PATTERN, SIZE_PATTERN } from "../lib/duration.ts";
import type { Schema } from "./dialect.ts";
import { FACTS } from "./facts.ts";

/** Failures that another candidate may mend. */
export const RETRYABLE = (Object.keys(ERRORS) as ErrorKind[]).filter(
  (k) => ERRORS[k][1] === "next",
);

export const DEFAULT_FRONTENDS = ["chat-completions", "messages", "responses", "images", "models"];
export const DEFAULT_MIDDLEWARE = ["auth", "zdr", "limits", "usage"];

const text = (description: string, more: Schema = {}) => ({ type: "string", description, ...more });
const flag = (description: string, value: boolean) => ({
  type: "boolean",
  description,
  default: value,
});
const list = (items: Schema, description: string, more: Schema = {}) => ({
  type: "array",
  items,
  description,
  ...more,
});
const closed = (properties: Schema, more: Schema = {}) => ({
  type: "object",
  additionalProperties: false,
  properties,
  ...more,
});
/** Where only a default keeps a map from being there, it is filled in like any other. */
const section = (description: string, properties: Schema) =>
  closed(properties, { description, default: {} });

const duration = (description: string, value?: string) =>
  text(description, {
    pattern: DURATION_PATTERN,
    "x-expects": "a duration with its unit, such as 300s, 5m or 250ms",
    ...(value === undefined ? {} : { default: value }),
  });

const timeouts = (defaults: { [name: string]: string | undefined }) => ({
  connect: duration("Until the connection to a provider stands", defaults["connect"]),
  first_byte: duration(
    "Until the provider's first byte; reasoning models think",
    defaults["first_byte"],
  ),
  idle: duration("Between two pieces of a provider's answer", defaults["idle"]),
  total: duration("For one call, all of it", defaults["total"]),
});

const name = (what: string) => ({
  type: "string",
  pattern: "^[a-z0-9][a-z0-9._-]*$",
  "x-expects": `${what}: lower-case letters, digits, dashes, dots and underscores`,
});

const USE = text("A built-in's name, a package, or a path such as ./plugin.ts", { minLength: 1 });
const WITH = { type: ["object", "null"], description: "The plugin's own options" };

/** A name alone, or the long form. */
const mounted = (long: Schema): Schema => ({
  if: { type: "string" },
  then: {
    minLength: 1,
    description: "A built-in's name, a package, or a path such as ./plugin.ts",
  },
  else: { "x-expects": "a plugin's name or { use, with }", ...long },
});

const plugin = closed({ use: USE, with: WITH }, { required: ["use"] });

const names = (description: string) =>
  list({ type: "string", minLength: 1 }, description, { minItems: 1 });

const middleware = closed(
  {
    use: USE,
    with: WITH,
    for: closed(
      {
        models: names("Model names, one star allowed"),
        frontends: names("Frontends, by name"),
        providers: names("Providers, by their key"),
      },
      { description: "Where it runs; everywhere if absent", minProperties: 1 },
    ),
  },
  { required: ["use"] },
);

const credential = closed(
  {
    name: { ...name("a credential's name"), description: "What the ledger and the logs call it" },
    with: { ...WITH, description: "The credential's fields, as the plugin names them" },
    zdr: closed(
      {
        declared: {
          type: "boolean",
          description: "This account has an agreement on zero retention",
        },
        note: text("Where that is written"),
        until: text("Last day on which it holds", {
          format: "date",
          "x-expects": "a date such as 2027-03-01",
        }),
      },
      {
        required: ["declared"],
        description: "Your own word on what the provider keeps under this credential",
      },
    ),
    weight: {
      type: "integer",
      minimum: 0,
      maximum: 1_000_000,
      description: "Share of the calls, beside the others'; 1 if absent",
    },
    models: names("What it may call, one star allowed; all if absent"),
  },
  { required: ["name"] },
);

const provider = closed(
  {
    use: {
      ...USE,
      description: "The plugin: a built-in's name, a package, or a path. The key itself if absent",
    },
    with: { ...WITH, description: "The plugin's options, and the fields of its one credential" },
    when: {
      type: ["string", "boolean", "number", "null"],
      description: "Empty, false or 0: this provider is left out, and nothing in it is read",
    },
    credentials: list(credential, "Several credentials, each with a name", { minItems: 1 }),
    trust_policy: {
      type: "boolean",
      description: "Believe this plugin when it claims that nothing is kept",
    },
    state: {
      enum: ["refuse", "relay"],
      description: "relay: let clients refer to what upstream keeps. Only with one tenant",
    },
    on_disconnect: {
      enum: ["cancel", "drain"],
      description: "drain: read on for the usage when the client has gone",
    },
    require_ready: {
      type: "boolean",
      description: "Refuse a config under which this provider does not answer",
    },
    timeouts: closed(timeouts({}), { description: "In place of the gateway's" }),
    models: {
      type: "object",
      additionalProperties: FACTS,
      description: "Facts of your own about its models: they win over what is shipped or listed",
    },
  },
  { type: ["object", "null"] },
);

const candidate = {
  type: "string",
  pattern: "^[^\\s\"'\\u0000-\\u001f\\u007f]{1,256}$",
  "x-expects": "provider/model, or another name under models",
};

const route: Schema = {
  if: { type: "string" },
  then: candidate,
  else: {
    if: { type: "array" },
    then: { items: candidate, minItems: 1 },
    else: {
      "x-expects": "provider/model, a list of them, or { candidates, pick, on }",
      ...closed(
        {
          candidates: list(candidate, "In the order in which they are tried", { minItems: 1 }),
          pick: {
            enum: ["ordered", "weighted"],
            description: "weighted: the first one by its credentials' weights",
          },
          on: list(
            { enum: RETRYABLE },
            "Failures after which the next one is tried; all that another may mend if absent",
            { uniqueItems: true },
          ),
        },
        { required: ["candidates"] },
      ),
    },
  },
};

export const SKELETON = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "gateway.yaml",
  ...closed({
    listen: section("Where clients reach the gateway. A change needs a restart", {
      host: text("127.0.0.1: this machine only. 0.0.0.0: everybody", {
        minLength: 1,
        default: "127.0.0.1",
      }),
      port: {
        type: "integer",
        minimum: 0,
        maximum: 65_535,
        default: 8787,
        description: "0: any free one",
      },
      hosts: list({ type: "string", minLength: 1 }, "More names in a Host header that mean us", {
        default: [],
      }),
      origins: list(
        {
          type: "string",
          pattern: "^https?://[^/\\s]+$",
          "x-expects": "an origin such as https://app.example",
        },
        "Web pages that may call us from a browser",
        { default: [] },
      ),
    }),
    public_url: text("Where clients reach us, for addresses we hand out", {
      pattern: "^https?://",
      format: "uri",
      "x-expects": "an address such as https://llm.example",
    }),
    state_dir: text(
      "Keys, ledger, last good catalogue. Relative to this file. A change needs a restart",
      { minLength: 1, default: "./.tollgate" },
    ),
    workers: {
      anyOf: [{ type: "integer", minimum: 1, maximum: 1024 }, { const: "auto" }],
      "x-expects": "a number of processes, or auto",
      default: 1,
      description: "Processes; auto: one per processor. A change needs a restart",
    },
    drain: duration("How long requests in flight may go on after a stop", "300s"),
    strict: flag("Refuse what another protocol cannot say in full, in place of a warning", false),
    timeouts: section(
      "Of one call to a provider",
      timeouts({ connect: "5s", first_byte: "600s", idle: "300s", total: "3600s" }),
    ),
    max_body: {
      type: ["string", "integer"],
      pattern: SIZE_PATTERN,
      minimum: 1,
      default: "32MiB",
      "x-expects": "a size such as 32MiB, or a number of bytes",
      description: "The largest request",
    },
    log: section("What the gateway writes about itself", {
      level: {
        enum: ["debug", "info", "warn", "error"],
        default: "info",
        description: "The least that is worth a line",
      },
      slow: duration("A request that waits longer for its first byte gets a line", "10s"),
    }),
    store: {
      ...mounted(plugin),
      default: "sqlite",
      description: "Keys, ledger and limits. A change needs a restart",
    },
    frontends: list(mounted(plugin), "What is served", { default: DEFAULT_FRONTENDS }),
    middleware: list(mounted(middleware), "What every request passes, in this order", {
      default: DEFAULT_MIDDLEWARE,
    }),
    providers: {
      type: "object",
      propertyNames: name("a provider's key"),
      additionalProperties: mounted(provider),
      default: {},
      description: "Who answers. A key is what stands before the first / of a model's name",
    },
    models: {
      type: "object",
      propertyNames: {
        pattern: "^(?=[^*]*\\*?[^*]*$)[^\\s\"'\\u0000-\\u001f\\u007f]{1,256}$",
        "x-expects":
          "a model's name: up to 256 printable characters, no space or quote, at most one star",
      },
      additionalProperties: route,
      default: {},
      description:
        "More names that clients may ask for. One star matches anything and is carried over",
    },
    include: {
      type: ["string", "array"],
      items: { type: "string", minLength: 1 },
      minLength: 1,
      description:
        "More files: their top-level maps are joined with these by key. A star may stand in a file's name",
    },
  }),
} as const;
