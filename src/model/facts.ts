import type { Operation } from "./request.ts";
import type { Unit } from "./usage.ts";
import type { HeadersOut, Json, JsonObject, Opt } from "./values.ts";

/** Feature that a request may need and a model may lack. */
export type Feature =
  | "stream"
  | "tools"
  | "parallel_tools"
  | "vision"
  | "documents"
  | "audio"
  | "json"
  | "json_schema"
  | "reasoning"
  | "system"
  | "logprobs"
  | "n"
  | `state.${string}`
  | `hosted.${string}`
  | `cache.${string}`;

/**
 * Support by feature: true, false, or unset if unknown. Requests with unknown features are
 * forwarded.
 */
export type FeatureSupport = { readonly [F in Feature]?: Opt<boolean> };

/**
 * Metadata of one model of a provider. Every field except `model` and `operation` is optional. A
 * field that is not set is unknown.
 */
export interface ModelInfo {
  /** The provider's name of the model. */
  model: string;
  /** Model type, such as `chat` or `embedding`. */
  operation: Operation;
  /** Display name. */
  name?: Opt<string>;
  /** Description for people who choose a model, in one line. At most 200 characters are used. */
  description?: Opt<string>;
  /**
   * Protocols of the provider that serve this model. Default: determined by the `servesModel`
   * function of each endpoint.
   */
  protocols?: Opt<readonly string[]>;
  /** Features that the model supports or lacks. */
  can?: Opt<FeatureSupport>;
  /** Top-level fields that make this model return an error. */
  rejectedFields?: Opt<readonly string[]>;
  /** Price of the model. */
  price?: Opt<Price>;
  /** ID of a model whose price applies to this model. */
  pricedAs?: Opt<string>;
  /** Data policy for this model, if it differs from the provider's. */
  dataPolicy?: Opt<Partial<DataPolicy>>;
  /** Maximum number of context, input, and output tokens, and of images in one request. */
  limits?: Opt<{ [K in "context" | "input" | "output" | "images"]?: Opt<number> }>;
  /** Sizes, qualities, and formats of an image model. */
  image?: Opt<ImageFacts>;
  /** Release date, as an ISO date. */
  released?: Opt<string>;
  /** Date on which the provider withdraws the model, as an ISO date. */
  retires?: Opt<string>;
}

/** Parameters that an image model accepts. If a list is missing, any value is forwarded. */
export interface ImageFacts {
  /** Sizes in the format of the images API: "1024x1024", "auto". */
  sizes?: Opt<readonly string[]>;
  /** Limits of free sizes, in pixels per side. Both sides must be multiples of `step`. */
  sides?: Opt<{ min: number; max: number; step?: Opt<number> }>;
  /** Accepted values of `quality`. */
  qualities?: Opt<readonly string[]>;
  /** Accepted output formats, such as `png`. */
  formats?: Opt<readonly string[]>;
}

/** Metadata that ships with a provider's code. */
export interface Facts {
  /** Time when the source was last read, as an ISO date. */
  asOf: string;
  /** Models of the provider. */
  models: readonly ModelInfo[];
}

/**
 * A price is a sum over units. Lines of a service tier or a bracket replace lines of the same unit.
 * If both contain a unit, the bracket's own line for the tier applies. Without one, the tier's rate
 * is increased in the same proportion as the bracket increases the rate without a tier. If a counted
 * unit has no line, its price is unknown.
 */
export interface Price {
  /** Rates that apply if no bracket or tier overrides them. */
  lines: readonly PriceLine[];
  /**
   * Brackets. If a request has more input tokens than `input` (including cached tokens), these
   * lines apply to all tokens of the request.
   */
  over?: Opt<readonly PriceBracket[]>;
  /** Lines by service tier, as the provider bills it. "*" applies to all other tiers. */
  tiers?: Opt<{ readonly [tier: string]: readonly PriceLine[] }>;
  /**
   * Factors that apply to every token line. A factor applies if all attributes in `when` match,
   * such as `{ region: "eu" }` or `{ speed: "fast" }`.
   */
  multipliers?: Opt<readonly { when: { readonly [fact: string]: string }; by: string }[]>;
  /** First day of validity, as an ISO date in UTC. Default: no start. */
  from?: Opt<string>;
  /** Last day of validity (inclusive), as an ISO date in UTC. Default: no end. */
  until?: Opt<string>;
  /**
   * Daily hours in UTC, from "HH:MM" to before "HH:MM". The range may span midnight. `days`: days
   * of the week, 0 = Sunday.
   */
  hours?: Opt<{ from: string; to: string; days?: Opt<readonly number[]> }>;
  /** Price outside of these dates or hours. */
  otherwise?: Opt<Price>;
}
/** Rates of a request with more input tokens than `input`. */
export interface PriceBracket {
  /** Number of input tokens above which the bracket applies. */
  input: number;
  /** Rates without a service tier. */
  lines: readonly PriceLine[];
  /** Rates by service tier, if they are not in proportion to the rates without a tier. */
  tiers?: Opt<{ readonly [tier: string]: readonly PriceLine[] }>;
}

/** The rate of one unit. */
export interface PriceLine {
  /** The unit that the rate is for. */
  unit: Unit;
  /**
   * Rate in US dollars, as a decimal string, because money is never stored as a floating-point
   * number.
   */
  usd: string;
  /** Number of units that `usd` pays for. */
  per: 1 | 1_000_000;
  /**
   * Restricts the line to a quality or size. `first`: only for the first megapixel of each image,
   * or the first unit of a call for any other unit. The most specific line is used.
   */
  variant?: Opt<{ quality?: Opt<string>; size?: Opt<string>; first?: Opt<boolean> }>;
}

/** Duration for which a provider stores content. `memory`: never on disk. */
export type Retention =
  /**
   * No content is stored, content is stored until the client deletes it, or the retention is
   * unknown.
   */
  | { kind: "zero" | "until_deleted" | "unknown" }
  /** Content is kept only in memory, for up to `hours`. */
  | { kind: "memory"; hours?: Opt<number> }
  /** Content is stored for up to `days`. */
  | { kind: "days"; days: number };

/**
 * Treatment of content by a provider. An unknown value never satisfies a privacy requirement. A
 * policy may claim zero retention only with evidence.
 */
export interface DataPolicy {
  /** How long the provider stores content. */
  retention: Retention;
  /** Whether the provider trains models on content. `opt_out` means that it does unless the account opts out. */
  trains: "no" | "yes" | "opt_out" | "unknown";
  /**
   * Requirement for zero retention: nothing, a console setting, or a contract. `unavailable`: zero
   * retention is not offered.
   */
  requires?: Opt<"none" | "console" | "contract" | "unavailable" | "unknown">;
  /**
   * Condition for zero retention: the operator declares it for the credential, or `controls` are
   * sent.
   */
  zeroWhen?: Opt<"credential" | "control">;
  /** Fields and headers to send for the policy to apply. */
  controls?: Opt<readonly PolicyControl[]>;
  /** Response header, and its value, that confirms zero retention. */
  attest?: Opt<{ header: string; equals: string }>;
  /** Features that store content, besides `state.*`. Default: all of `hosted.*`, and `cache.extended`. */
  stateful?: Opt<readonly Feature[]>;
  /** Regions in which content is processed. If it is exactly one, prices for that region apply. */
  region?: Opt<readonly string[]>;
  /** URLs of the provider's pages that state the policy. Zero retention without evidence counts as unknown. */
  evidence?: Opt<readonly string[]>;
  /** Date on which the evidence was last read, as an ISO date. */
  verifiedAt?: Opt<string>;
  /** Date from which the policy counts as unknown, as an ISO date. Default: never. */
  expires?: Opt<string>;
}

/**
 * An exception to the provider's policy for a protocol, a model type, or models (a name with at
 * most one `*`). All matching exceptions apply, and the least private value is used.
 */
export interface PolicyException {
  /** ID of the protocol that the exception is for. Default: all. */
  protocol?: Opt<string>;
  /** Model type that the exception is for. Default: all. */
  operation?: Opt<Operation>;
  /** Model name or pattern that the exception is for. Default: all. */
  model?: Opt<string>;
  /** Parts of the policy that differ. */
  dataPolicy: Partial<DataPolicy>;
}

/** Fields and headers that must be sent for a policy to apply. */
export interface PolicyControl {
  /** ID of the protocol in which the control is sent. Default: all. */
  protocol?: Opt<string>;
  /** Fields to set. An object is merged into an existing object. Any other value is replaced. */
  set?: Opt<JsonObject>;
  /** Values to append to lists, if they are not yet included. */
  add?: Opt<{ readonly [field: string]: readonly Json[] }>;
  /** Headers to set on the request. */
  headers?: Opt<HeadersOut>;
}

/**
 * The least private values of the policies of provider, endpoint, model, credential, and requested
 * features. The host computes it, with reasons.
 */
export interface EffectivePolicy extends DataPolicy {
  /** Basis of `retention`: `published`, `control`, `declared`, `excluded`, or `unknown`. */
  basis: string;
  /** Codes of the reasons why the policy is not zero retention, such as `credential_not_declared`. */
  reasons: readonly string[];
}

/**
 * Privacy that a request requires. `required`: nothing is stored and nothing is used for training.
 * `strict`: also no prompt cache.
 */
export type Privacy = "off" | "required" | "strict";
/**
 * How a call is forwarded. `passthrough`: the client's bytes with recorded edits. `translated`:
 * decoded into the common form and encoded for the provider.
 */
export type ForwardingMode = "passthrough" | "translated";
