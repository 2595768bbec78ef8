import type { Kind } from "./request.ts";
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
export type Can = { readonly [F in Feature]?: Opt<boolean> };

/** What is known of one model of a provider. Every member but the name may be absent, which means unknown. */
export interface ModelInfo {
  model: string;
  kind: Kind;
  name?: Opt<string>;
  /** Which of its provider's protocols serve this model; absent = the endpoints' own `serves`. */
  protocols?: Opt<readonly string[]>;
  can?: Opt<Can>;
  /** Top-level fields that this model answers with an error. */
  refuses?: Opt<readonly string[]>;
  price?: Opt<Price>;
  pricedAs?: Opt<string>;
  data?: Opt<Partial<DataPolicy>>;
  limits?: Opt<{ [K in "context" | "input" | "output" | "images"]?: Opt<number> }>;
  image?: Opt<ImageFacts>;
  /** ISO dates. */
  released?: Opt<string>;
  retires?: Opt<string>;
}

/** What an image model takes. A list that is absent is unknown: whatever is asked is forwarded. */
export interface ImageFacts {
  /** As the images protocol writes them: "1024x1024", "auto". */
  sizes?: Opt<readonly string[]>;
  /** Bounds of a free size, in pixels of one side; `step`: both sides are multiples of it. */
  sides?: Opt<{ min: number; max: number; step?: Opt<number> }>;
  qualities?: Opt<readonly string[]>;
  formats?: Opt<readonly string[]>;
}

/** What ships beside a provider's code. */
export interface Facts {
  /** When the source was last read, as an ISO date. */
  asOf: string;
  models: readonly ModelInfo[];
}

/**
 * A price is a sum over units. The lines of a service tier or of a bracket replace the lines of the same unit; where
 * both name a unit, the tier's rate is raised as the bracket raises the plain one. A unit that was counted and has no
 * line has no known price.
 */
export interface Price {
  lines: readonly PriceLine[];
  /** Brackets: with more input tokens than this (caches included), these lines hold for the whole request. */
  over?: Opt<readonly { input: number; lines: readonly PriceLine[] }[]>;
  /** By the name upstream bills; "*" stands for any other. */
  tiers?: Opt<{ readonly [tier: string]: readonly PriceLine[] }>;
  /** Factors on every token line, each when all of `when` is so: { region: "eu" }, { speed: "fast" }. */
  multipliers?: Opt<readonly { when: { readonly [fact: string]: string }; by: string }[]>;
  /** First and last day, UTC, both included. */
  from?: Opt<string>;
  until?: Opt<string>;
  /** Time of day, UTC, "HH:MM" up to but without "HH:MM", over midnight too; days: 0 = Sunday. */
  hours?: Opt<{ from: string; to: string; days?: Opt<readonly number[]> }>;
  /** What holds when this price's dates or hours do not. */
  otherwise?: Opt<Price>;
}
/** The rate of one unit. */
export interface PriceLine {
  unit: Unit;
  /** A decimal string: money never passes through a float. */
  usd: string;
  per: 1 | 1_000_000;
  /**
   * Only for this quality or size. `first`: only for the first megapixel of each image, and of any other unit for the first one of
   * a call. The most particular line wins.
   */
  variant?: Opt<{ quality?: Opt<string>; size?: Opt<string>; first?: Opt<boolean> }>;
}

/** How long content stays with a provider. `memory`: never on disk. */
export type Retention =
  | { kind: "zero" | "until_deleted" | "unknown" }
  | { kind: "memory"; hours?: Opt<number> }
  | { kind: "days"; days: number };

/** What becomes of what people wrote. Unknown is never good enough; only a row with evidence may say zero. */
export interface DataPolicy {
  retention: Retention;
  trains: "no" | "yes" | "opt_out" | "unknown";
  requires?: Opt<"none" | "console" | "contract" | "unavailable" | "unknown">;
  zeroWhen?: Opt<"credential" | "control">;
  controls?: Opt<readonly PolicyControl[]>;
  attest?: Opt<{ header: string; equals: string }>;
  stateful?: Opt<readonly Feature[]>;
  region?: Opt<readonly string[]>;
  evidence?: Opt<readonly string[]>;
  verifiedAt?: Opt<string>;
  expires?: Opt<string>;
}

/** Where another word than the provider's own holds: for a protocol, for what is made, for models (one `*`). Each that fits counts, and the worst wins. */
export interface PolicyException {
  protocol?: Opt<string>;
  kind?: Opt<Kind>;
  model?: Opt<string>;
  data: Partial<DataPolicy>;
}

/** What must be sent for a promise to hold. */
export interface PolicyControl {
  protocol?: Opt<string>;
  /** An object is merged into an object; all else is replaced. */
  set?: Opt<JsonObject>;
  /** Appended to a list, once. */
  add?: Opt<{ readonly [field: string]: readonly Json[] }>;
  headers?: Opt<HeadersOut>;
}

/** Worst of provider, endpoint, model, credential and the features asked for; the host computes it, with its reasons. */
export interface EffectivePolicy extends DataPolicy {
  basis: string;
  because: readonly string[];
}

/**
 * What a request asks about retention. required: nothing is kept and nothing is learnt. strict: no prompt cache
 * either.
 */
export type Privacy = "off" | "required" | "strict";
/** How a call travels. verbatim: the client's bytes, with recorded edits. translated: through the canonical model. */
export type Lane = "verbatim" | "translated";
