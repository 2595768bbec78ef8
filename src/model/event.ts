import type { Block, Media, Proof, ResponseItem } from "./request.ts";
import type { Usage } from "./usage.ts";
import type { Json, Opt } from "./values.ts";

/** Why an answer ended, in words that every protocol can be mapped to. A reason newer than us is `other`. */
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
 * An answer, as it is made. The grammar:
 *
 *     start (open (delta | media | proof | cite)* close | item | usage)* finish
 *
 * A block is opened once and closed once, and blocks may be open together (an encoder that cannot say so, buffers).
 * Usage is cumulative. There is one finish, and a decoder that ends without it throws. Errors are thrown, not emitted.
 * `start` means that upstream has accepted the work: a call that fails after it is estimated, never void.
 */
export type ModelEvent =
  | UsageReport
  | Finish
  /** The provider accepted the request. `id` is its ID of the response, `model` the model that answers. */
  | { type: "start"; id?: Opt<string>; model?: Opt<string> }
  /** A block begins. Later events refer to it by `index`. */
  | { type: "open"; index: number; block: OpenBlock }
  /** Text, reasoning, or a tool's arguments. */
  | { type: "delta"; index: number; text: string; logprobs?: Opt<readonly Json[]> }
  /** Image or audio data. `partial` marks a preview, `note` is the text that the provider attached. */
  | { type: "media"; index: number; media: Media; partial?: Opt<boolean>; note?: Opt<string> }
  /** Signature or encrypted content of a block. */
  | { type: "proof"; index: number; proof: Proof }
  /** Source of a text block, as the provider returned it. */
  | { type: "cite"; index: number; citation: Json }
  /** A block is complete. */
  | { type: "close"; index: number }
  /** One whole thing of an answer that is a list of things: a vector, a score. `index` is its place in the list. */
  | { type: "item"; index: number; item: ResponseItem };

/** What a block is, said when it opens. Its content follows as deltas, media, proofs and citations. */
export type OpenBlock =
  /** A block whose type needs no further information. */
  | { type: "text" | "refusal" | "image" | "audio" }
  /** `summary`: what follows is a digest for people, not the model's own reasoning. */
  | { type: "reasoning"; summary?: Opt<boolean> }
  /** Content that only the protocol `origin` can read, such as the result of a hosted tool. */
  | { type: "opaque"; origin: string; raw: Json }
  /** A call of a client tool. Its arguments follow as deltas. */
  | { type: "call"; id: string; name: string; tool: "function" | "custom" };

/**
 * The end of an answer. `sequence` is the stop sequence that was met; `detail` is the provider's own word for the
 * reason.
 */
export interface Finish {
  /** Marks the last event of a response. */
  type: "finish";
  /** Why the response ended. */
  reason: FinishReason;
  /** Stop sequence that ended the response. */
  sequence?: Opt<string>;
  /** The provider's own word for the reason. */
  detail?: Opt<string>;
}

/** Cumulative: a later one replaces an earlier one unit by unit; one with another `model` is a bill line of its own. */
export interface UsageReport {
  /** Marks a usage report. */
  type: "usage";
  /** Units that the response has used so far. */
  usage: Usage;
  /** Model that is billed, if it is not the model of the call. */
  model?: Opt<string>;
  /** Service tier that is billed, as the provider names it. */
  tier?: Opt<string>;
  /** Of pictures, as they were made. */
  size?: Opt<string>;
  /** Quality of the images that were made. */
  quality?: Opt<string>;
  /** What a price's multipliers ask for, as upstream says it was: { speed: "fast" }. */
  pricingAttributes?: Opt<{ readonly [fact: string]: Opt<string> }>;
  /** The provider's own price of this answer, kept beside ours. */
  costNano?: Opt<bigint>;
}

/** A whole answer is the fold of its events, so no provider implements two things. */
export interface ModelResponse {
  /** The provider's ID of the response. */
  id?: Opt<string>;
  /** Content of the response, in order. */
  blocks: readonly Block[];
  /** By their index. Absent where no item came. */
  items?: Opt<readonly ResponseItem[]>;
  /** Units that the response used. */
  usage: Usage;
  /** Why the response ended. */
  finish: Finish;
}
