// Schemas of the entries under store, frontends, middleware, providers, and models, in their short
// and long forms.
import { ERRORS, type ErrorKind } from "../../model/error.ts";
import { ROUTING_STRATEGIES } from "../../model/route-settings.ts";
import type { Schema } from "../schema-dialect.ts";
import { HEDGE_SCHEMA } from "../sections/hedge.ts";
import {
  closedObject,
  date,
  duration,
  flag,
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

const USE_SCHEMA = nonEmptyText(
  "Name of a built-in plugin, a package name, or a path such as ./plugin.ts",
);
const WITH_SCHEMA = { type: ["object", "null"], description: "Options of the plugin" };

/** Builds a value that is either a name or the long form. */
export const nameOrObject = (long: Schema): Schema => ({
  if: { type: "string" },
  then: {
    minLength: 1,
    description: "Name of a built-in plugin, a package name, or a path such as ./plugin.ts",
  },
  else: { "x-expects": "a plugin name or { use, with }", ...long },
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
        models: names("Model names. Each * matches any text", { minItems: 1 }),
        frontends: names("Names of frontends", { minItems: 1 }),
        providers: names("Keys of providers", { minItems: 1 }),
      },
      {
        description: "Requests that this middleware applies to. If unset, all requests",
        minProperties: 1,
      },
    ),
    timeout: duration(
      "Maximum run time of an asynchronous hook. A hook that takes longer fails",
      "30s",
    ),
    on_error: {
      enum: ["reject", "continue"],
      default: "reject",
      description:
        "Reaction to a hook that fails or times out. reject: the request fails. continue: " +
        "the middleware is skipped. A rejection by the hook always takes effect",
    },
    isolate: {
      enum: ["child"],
      description:
        "Process that runs the plugin. child: a separate process without environment " +
        "variables and permissions. If unset, the gateway's own process",
    },
    trust_policy: flag(
      "Whether to trust this plugin's claim that the services it sends data to retain nothing",
      false,
    ),
  },
  { required: ["use"] },
);

const credentialSchema = closedObject(
  {
    name: {
      ...name("a credential's name"),
      description: "Name of the credential in the ledger and the logs",
    },
    with: { ...WITH_SCHEMA, description: "Fields of the credential, as the plugin names them" },
    zdr: closedObject(
      {
        declared: {
          type: "boolean",
          description: "Whether this account has a zero data retention agreement",
        },
        note: text("Document with the agreement"),
        until: date("Last day on which the agreement is valid"),
      },
      {
        required: ["declared"],
        description: "Your own statement of what the provider retains under this credential",
      },
    ),
    weight: {
      type: "integer",
      minimum: 0,
      maximum: 1_000_000,
      default: 1,
      description: "Share of the calls relative to the other credentials",
    },
    models: names(
      "Models that this credential may be used for. Each * matches any text. Default: all",
      {
        minItems: 1,
      },
    ),
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
          "Name of a built-in plugin, a package name, or a path. Default: the key of this " +
          "provider",
      },
      with: {
        ...WITH_SCHEMA,
        description: "Options of the plugin, and the fields of its single credential",
      },
      when: {
        type: ["string", "boolean", "number", "null"],
        description:
          "Whether the provider is enabled. If the value is empty, false, or 0, the " +
          "provider is left out and its other keys are not read",
      },
      credentials: list(credentialSchema, "Several credentials, each with a name", { minItems: 1 }),
      credential: {
        enum: ["client"],
        description:
          "client: each call has the client's own credential, such as the token of a subscription, " +
          "and the client pays for it. Set client_accounts as well. Default: a credential of the " +
          "gateway",
      },
      client_accounts: names(
        "Accounts, with the accounts nested under them, whose keys may use their own credential " +
          'with credential: client. "*": every key',
        { minItems: 1 },
      ),
      trust_policy: flag("Whether to trust this plugin's claim that nothing is retained", false),
      state_mode: {
        enum: ["reject", "relay"],
        default: "reject",
        description:
          "Whether clients may refer to objects that the provider stores. relay: they may. Use " +
          "relay only with a single tenant",
      },
      zdr_allowed_fields: names(
        "Request fields that may be sent under Service-ZDR although they were not " +
          "reviewed, in the form of the error message: min_p, messages[].new",
        { minItems: 1 },
      ),
      trace: {
        enum: ["off", "forward"],
        default: "off",
        description:
          "Whether calls contain the request's trace context (traceparent). forward: " +
          "calls contain it, with the gateway's span as the parent. Calls under " +
          "Service-ZDR never contain it. " +
          "Use forward only " +
          "for your own servers",
      },
      on_disconnect: {
        enum: ["cancel", "drain"],
        default: "cancel",
        description:
          "Reaction to a client that disconnects. cancel: the call is canceled. drain: the " +
          "response is read to its end, to receive the usage",
      },
      require_ready: flag("Whether to reject a config if this provider does not respond", false),
      timeouts: closedObject(timeouts({}), { description: "Overrides of the gateway's timeouts" }),
      models: {
        type: "object",
        additionalProperties: facts,
        description: "Your own model metadata, which overrides built-in and listed metadata",
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
        model: {
          ...candidateSchema,
          description: "Target: provider/model, or another name under models",
        },
        weight: {
          type: "integer",
          minimum: 0,
          maximum: 1_000_000,
          description:
            "Share relative to the other candidates, for pick: weighted and sticky. Default: " +
            "the sum of the weights of its credentials",
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
          candidates: list(
            weightedCandidateSchema,
            "Candidates, in the order in which they are tried",
            {
              minItems: 1,
            },
          ),
          pick: {
            enum: ROUTING_STRATEGIES,
            default: "ordered",
            description:
              "Routing strategy. ordered: the first in the list. weighted: random, in proportion to the weights. fastest: the lowest estimated time to first token. cheapest: the lowest price for the request, by the catalog. sticky: the same candidate for a whole conversation, to use its prompt cache",
          },
          fallback_on: list(
            { enum: FALLBACK_KINDS },
            "Failures after which the next candidate is tried. context_length and " +
              "content_policy can be added",
            { uniqueItems: true, default: DEFAULT_FALLBACK_KINDS },
          ),
          hedge: HEDGE_SCHEMA,
        },
        { required: ["candidates"] },
      ),
    },
  },
};
