import type { Block, Media, Proof, ResponseItem } from "./request.ts";
import type { Usage } from "./usage.ts";
import type { Json, Opt } from "./values.ts";

/**
 * Finish reason of a response, in terms that map to every protocol. Unknown reasons become `other`.
 */
export type FinishReason =
  | "stop"
  | "stop_sequence"
  | "length"
  | "context"
  | "tool_calls"
  | "filtered"
  | "refusal"
  | "pause"
  | "other";

/**
 * One event of a response. The grammar:
 *
 *     start (open (delta | media | proof | cite)* close | item | usage)* finish
 *
 * Each block is opened once and closed once. Several blocks may be open at the same time. An
 * encoder whose protocol does not support this must buffer them. Usage is cumulative. There is
 * exactly one finish event, and a decoder that ends without one throws. Errors are thrown, not
 * emitted. `start` means that the provider accepted the request: a call that fails later is billed
 * as estimated, and never as void.
 */
export type ModelEvent =
  | UsageReport
  | Finish
  /**
   * The provider accepted the request. `id` is the provider's ID of the response, and `model` is
   * the model that responds.
   */
  | { type: "start"; id?: Opt<string>; model?: Opt<string> }
  /** Start of a block. Later events refer to the block by `index`. */
  | { type: "open"; index: number; block: OpenBlock }
  /** Text, reasoning, or a tool's arguments. */
  | { type: "delta"; index: number; text: string; logprobs?: Opt<readonly Json[]> }
  /** Image or audio data. `partial` marks a preview. `note` is text that the provider attached. */
  | { type: "media"; index: number; media: Media; partial?: Opt<boolean>; note?: Opt<string> }
  /** Signature or encrypted content of a block. */
  | { type: "proof"; index: number; proof: Proof }
  /** Source of a text block, as the provider returned it. */
  | { type: "cite"; index: number; citation: Json }
  /** A block is complete. */
  | { type: "close"; index: number }
  /**
   * One complete item of a response that is a list, such as an embedding or a score. `index` is its
   * position in the list.
   */
  | { type: "item"; index: number; item: ResponseItem };

/**
 * Type of a block, sent when the block opens. The content follows as deltas, media, proofs, and
 * citations.
 */
export type OpenBlock =
  /** A block whose type needs no further information. */
  | { type: "text" | "refusal" | "image" | "audio" }
  /** With `summary`, the content is a summary for people and not the model's own reasoning. */
  | { type: "reasoning"; summary?: Opt<boolean> }
  /** Content that only the protocol `origin` can read, such as the result of a hosted tool. */
  | { type: "opaque"; origin: string; raw: Json }
  /** A call of a client tool. Its arguments follow as deltas. */
  | { type: "call"; id: string; name: string; tool: "function" | "custom" };

/** End of a response. */
export interface Finish {
  /** Marks the last event of a response. */
  type: "finish";
  /** Finish reason of the response. */
  reason: FinishReason;
  /** Stop sequence that ended the response. */
  sequence?: Opt<string>;
  /** The provider's own word for the reason. */
  detail?: Opt<string>;
}

/**
 * Cumulative usage. For each unit that a later report contains, its count replaces the earlier
 * count. A report with another `model` is a separate line of the bill.
 */
export interface UsageReport {
  /** Marks a usage report. */
  type: "usage";
  /** Units that the response has used up to this event. */
  usage: Usage;
  /** Model that is billed, if it is not the model of the call. */
  model?: Opt<string>;
  /** Service tier that is billed, as the provider names it. */
  tier?: Opt<string>;
  /** Size of the images that were made. */
  size?: Opt<string>;
  /** Quality of the images that were made. */
  quality?: Opt<string>;
  /**
   * Attributes that the multipliers of a price match, as reported by the provider, such as `{
   * speed: "fast" }`.
   */
  pricingAttributes?: Opt<{ readonly [fact: string]: Opt<string> }>;
  /**
   * Price of this response as the provider reports it, in nano-dollars. Stored in addition to the
   * computed price.
   */
  costNano?: Opt<bigint>;
}

/**
 * A complete response: the result of collecting its events. Providers therefore only have to create
 * events.
 */
export interface ModelResponse {
  /** The provider's ID of the response. */
  id?: Opt<string>;
  /** Content of the response, in order. */
  blocks: readonly Block[];
  /** Items by index. Unset if there are none. */
  items?: Opt<readonly ResponseItem[]>;
  /** Units that the response used. */
  usage: Usage;
  /** Finish reason and usage of the response. */
  finish: Finish;
}
