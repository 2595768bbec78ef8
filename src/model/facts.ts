import type { Operation } from "./request.ts";
import type { Unit } from "./usage.ts";
import type { HeadersOut, Json, JsonObject, Opt } from "./values.ts";

/** What a request may ask for and a model may lack. */
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

/** Three values: true, false, and absent for unknown. Unknown is forwarded. */
export type FeatureSupport = { readonly [F in Feature]?: Opt<boolean> };

/** What is known of one model of a provider. Every member but the name may be absent, which means unknown. */
export interface ModelInfo {
  /** The provider's name of the model. */
  model: string;
  /** Model type, such as `chat` or `embedding`. */
  operation: Operation;
  /** Display name. */
  name?: Opt<string>;
  /** Which of its provider's protocols serve this model; absent = the endpoints' own `serves`. */
  protocols?: Opt<readonly string[]>;
  /** Features that the model supports or lacks. */
  can?: Opt<FeatureSupport>;
  /** Top-level fields that this model answers with an error. */
  rejectedFields?: Opt<readonly string[]>;
  /** Price of the model. */
  price?: Opt<Price>;
  /** ID of a model whose price applies to this one. */
  pricedAs?: Opt<string>;
  /** Data policy for this model, where it differs from the provider's. */
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

/** What an image model takes. A list that is absent is unknown: whatever is asked is forwarded. */
export interface ImageFacts {
  /** As the images protocol writes them: "1024x1024", "auto". */
  sizes?: Opt<readonly string[]>;
  /** Bounds of a free size, in pixels of one side; `step`: both sides are multiples of it. */
  sides?: Opt<{ min: number; max: number; step?: Opt<number> }>;
  /** Accepted values of `quality`. */
  qualities?: Opt<readonly string[]>;
  /** Accepted output formats, such as `png`. */
  formats?: Opt<readonly string[]>;
}

/** What ships beside a provider's code. */
export interface Facts {
  /** When the source was last read, as an ISO date. */
  asOf: string;
  /** Models of the provider. */
  models: readonly ModelInfo[];
}

/**
 * A price is a sum over units. The lines of a service tier or of a bracket replace the lines of the same unit; where
 * both name a unit, the tier's rate is raised as the bracket raises the plain one. A unit that was counted and has no
 * line has no known price.
 */
export interface Price {
  /** Rates that apply if no bracket or tier overrides them. */
  lines: readonly PriceLine[];
  /** Brackets: with more input tokens than this (caches included), these lines hold for the whole request. */
  over?: Opt<readonly { input: number; lines: readonly PriceLine[] }[]>;
  /** By the name upstream bills; "*" stands for any other. */
  tiers?: Opt<{ readonly [tier: string]: readonly PriceLine[] }>;
  /** Factors on every token line, each when all of `when` is so: { region: "eu" }, { speed: "fast" }. */
  multipliers?: Opt<readonly { when: { readonly [fact: string]: string }; by: string }[]>;
  /** First day of validity, as an ISO date in UTC. Default: no start. */
  from?: Opt<string>;
  /** Last day of validity, included, as an ISO date in UTC. Default: no end. */
  until?: Opt<string>;
  /** Time of day, UTC, "HH:MM" up to but without "HH:MM", over midnight too; days: 0 = Sunday. */
  hours?: Opt<{ from: string; to: string; days?: Opt<readonly number[]> }>;
  /** What holds when this price's dates or hours do not. */
  otherwise?: Opt<Price>;
}
/** The rate of one unit. */
export interface PriceLine {
  /** The unit that the rate is for. */
  unit: Unit;
  /** A decimal string: money never passes through a float. */
  usd: string;
  /** Number of units that `usd` pays for. */
  per: 1 | 1_000_000;
  /**
   * Only for this quality or size. `first`: only for the first megapixel of each image, and of any other unit for the first one of
   * a call. The most particular line wins.
   */
  variant?: Opt<{ quality?: Opt<string>; size?: Opt<string>; first?: Opt<boolean> }>;
}

/** How long content stays with a provider. `memory`: never on disk. */
export type Retention =
  /** Nothing is stored, content is stored until the client deletes it, or the retention is not known. */
  | { kind: "zero" | "until_deleted" | "unknown" }
  /** Content is held in memory only, for up to `hours`. */
  | { kind: "memory"; hours?: Opt<number> }
  /** Content is stored for up to `days`. */
  | { kind: "days"; days: number };

/** What becomes of what people wrote. Unknown is never good enough; only a row with evidence may say zero. */
export interface DataPolicy {
  /** How long the provider stores content. */
  retention: Retention;
  /** Whether the provider trains models on content. `opt_out` means that it does unless the account opts out. */
  trains: "no" | "yes" | "opt_out" | "unknown";
  /** What the account needs for zero retention: nothing, a console setting, or a contract. `unavailable`: it cannot be had. */
  requires?: Opt<"none" | "console" | "contract" | "unavailable" | "unknown">;
  /** What makes retention zero: the operator declares it for the credential, or `controls` are sent. */
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

/** Where another word than the provider's own holds: for a protocol, for what is made, for models (one `*`). Each that fits counts, and the worst wins. */
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

/** What must be sent for a promise to hold. */
export interface PolicyControl {
  /** ID of the protocol in which the control is sent. Default: all. */
  protocol?: Opt<string>;
  /** An object is merged into an object; all else is replaced. */
  set?: Opt<JsonObject>;
  /** Appended to a list, once. */
  add?: Opt<{ readonly [field: string]: readonly Json[] }>;
  /** Headers to set on the request. */
  headers?: Opt<HeadersOut>;
}

/** Worst of provider, endpoint, model, credential and the features asked for; the host computes it, with its reasons. */
export interface EffectivePolicy extends DataPolicy {
  /** What `retention` is based on: `published`, `control`, `declared`, `excluded`, or `unknown`. */
  basis: string;
  /** Codes of the reasons why the policy is not zero retention, such as `credential_not_declared`. */
  reasons: readonly string[];
}

/**
 * What a request asks about retention. required: nothing is kept and nothing is learnt. strict: no prompt cache
 * either.
 */
export type Privacy = "off" | "required" | "strict";
/** How a call travels. passthrough: the client's bytes, with recorded edits. translated: through the canonical model. */
export type ForwardingMode = "passthrough" | "translated";
