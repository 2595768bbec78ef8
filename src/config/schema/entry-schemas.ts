// Schemas of the entries under store, frontends, middleware, providers, and models, in their short
// and long forms.
import { ERRORS, type ErrorKind } from "../../model/error.ts";
import { ROUTING_STRATEGIES } from "../../model/routing-strategy.ts";
import type { Schema } from "../schema-dialect.ts";
import { HEDGE_SCHEMA } from "../sections/hedge.ts";
import {
  closedObject,
  date,
  duration,
  list,
  name,
  nonEmptyText,
  names,
  text,
  timeouts,
} from "../schema-builders.ts";

const ERROR_KINDS = Object.keys(ERRORS) as ErrorKind[];

/** Failures after which another candidate is tried if a route does not set `fallback_on`. */
export const DEFAULT_FALLBACK_KINDS = ERROR_KINDS.filter((k) => ERRORS[k][1] === "next");
/** Failures that another candidate may not have. */
const FALLBACK_KINDS = ERROR_KINDS.filter((k) => ERRORS[k][1] !== "never");

const USE_SCHEMA = nonEmptyText("A built-in's name, a package, or a path such as ./plugin.ts");
const WITH_SCHEMA = { type: ["object", "null"], description: "The plugin's own options" };

/** Builds a value that is either a name or the long form. */
export const nameOrObject = (long: Schema): Schema => ({
  if: { type: "string" },
  then: {
    minLength: 1,
    description: "A built-in's name, a package, or a path such as ./plugin.ts",
  },
  else: { "x-expects": "a plugin's name or { use, with }", ...long },
});

export const pluginSchema = closedObject(
  { use: USE_SCHEMA, with: WITH_SCHEMA },
  { required: ["use"] },
);

export const middlewareSchema = closedObject(
  {
    use: USE_SCHEMA,
    with: WITH_SCHEMA,
    for: closedObject(
      {
        models: names("Model names. A * stands for any text", { minItems: 1 }),
        frontends: names("Frontends, by name", { minItems: 1 }),
        providers: names("Providers, by their key", { minItems: 1 }),
      },
      { description: "Where it runs; everywhere if absent", minProperties: 1 },
    ),
    timeout: duration(
      "How long one of its hooks may take; a hook that takes longer has failed. 30s if absent",
    ),
    on_error: {
      enum: ["reject", "continue"],
      description:
        "When one of its hooks fails or takes too long. reject: the request fails; so it is if absent. continue: it goes on as if this middleware were not there. What a hook rejects stays rejected",
    },
    isolate: {
      enum: ["child"],
      description:
        "child: in a process of its own, without environment and rights. In the gateway's own if absent",
    },
    trust_policy: {
      type: "boolean",
      description: "Believe this plugin when it claims that nothing is kept where it sends things",
    },
  },
  { required: ["use"] },
);

const credentialSchema = closedObject(
  {
    name: { ...name("a credential's name"), description: "What the ledger and the logs call it" },
    with: { ...WITH_SCHEMA, description: "The credential's fields, as the plugin names them" },
    zdr: closedObject(
      {
        declared: {
          type: "boolean",
          description: "This account has an agreement on zero retention",
        },
        note: text("Where that is written"),
        until: date("Last day on which it holds"),
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
    models: names("Models that it may call. A * stands for any text. Default: all", {
      minItems: 1,
    }),
  },
  { required: ["name"] },
);

/**
 * Builds the schema of a provider.
 * @param facts Schema of one model's metadata.
 */
export const createProviderSchema = (facts: Schema) =>
  closedObject(
    {
      use: {
        ...USE_SCHEMA,
        description:
          "The plugin: a built-in's name, a package, or a path. The key itself if absent",
      },
      with: {
        ...WITH_SCHEMA,
        description: "The plugin's options, and the fields of its one credential",
      },
      when: {
        type: ["string", "boolean", "number", "null"],
        description: "Empty, false or 0: this provider is left out, and nothing in it is read",
      },
      credentials: list(credentialSchema, "Several credentials, each with a name", { minItems: 1 }),
      trust_policy: {
        type: "boolean",
        description: "Believe this plugin when it claims that nothing is kept",
      },
      state_mode: {
        enum: ["reject", "relay"],
        description: "relay: let clients refer to what upstream keeps. Only with one tenant",
      },
      zdr_allowed_fields: names(
        "Fields that may leave under Service-ZDR though they were not reviewed, as the error names them: min_p, messages[].new",
        { minItems: 1 },
      ),
      trace: {
        enum: ["off", "forward"],
        description:
          "forward: its calls carry the request's trace (traceparent), under our own span; never those under Service-ZDR. For servers of your own",
      },
      on_disconnect: {
        enum: ["cancel", "drain"],
        description: "drain: read on for the usage when the client has gone",
      },
      require_ready: {
        type: "boolean",
        description: "Refuse a config under which this provider does not answer",
      },
      timeouts: closedObject(timeouts({}), { description: "In place of the gateway's" }),
      models: {
        type: "object",
        additionalProperties: facts,
        description: "Facts of your own about its models: they win over what is shipped or listed",
      },
    },
    { type: ["object", "null"] },
  );

const candidateSchema: Schema = {
  type: "string",
  pattern: "^[^\\s\"'\\u0000-\\u001f\\u007f]{1,256}$",
  "x-expects": "provider/model, or another name under models",
};

const weightedCandidateSchema: Schema = {
  if: { type: "string" },
  then: candidateSchema,
  else: {
    "x-expects": "provider/model, another name under models, or { model, weight }",
    ...closedObject(
      {
        model: { ...candidateSchema, description: "provider/model, or another name under models" },
        weight: {
          type: "integer",
          minimum: 0,
          maximum: 1_000_000,
          description:
            "Its share, beside the others', for pick: weighted and sticky; the weights of its credentials together if absent",
        },
      },
      { required: ["model"] },
    ),
  },
};

export const routeSchema: Schema = {
  if: { type: "string" },
  then: candidateSchema,
  else: {
    if: { type: "array" },
    then: { items: candidateSchema, minItems: 1 },
    else: {
      "x-expects": "provider/model, a list of them, or { candidates, pick, fallback_on, hedge }",
      ...closedObject(
        {
          candidates: list(weightedCandidateSchema, "In the order in which they are tried", {
            minItems: 1,
          }),
          pick: {
            enum: ROUTING_STRATEGIES,
            description:
              "Which one is tried first. ordered, so if absent: as they are written; weighted: by chance, each as often as its weight says; fastest: the one that brings its first content soonest; cheapest: by the catalog's prices for what is asked; sticky: one conversation stays with one of them, for its prompt cache",
          },
          fallback_on: list(
            { enum: FALLBACK_KINDS },
            "Failures after which the next one is tried; if absent, all but context_length and content_policy, which a route must name",
            { uniqueItems: true },
          ),
          hedge: HEDGE_SCHEMA,
        },
        { required: ["candidates"] },
      ),
    },
  },
};
