// The words of this wire and their canonical counterparts.
import { fail } from "../../model/error.ts";
import { createSourceMemory } from "../source-memory.ts";
import { isObject } from "../json-values.ts";
import { isMultiplierField } from "../requested-amounts.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Json, Opt } from "../../model/values.ts";

export const ID = "messages";

/** A turn or a block that says more than the common vocabulary can. */
export const { remember: rememberSource, sourceOf } = createSourceMemory();

/** Top-level fields with a canonical place. */
const CANONICAL = [
  "model",
  "messages",
  "system",
  "max_tokens",
  "stop_sequences",
  "stream",
  "temperature",
  "top_p",
  "top_k",
  "thinking",
  "output_config",
  "output_format",
  "tools",
  "tool_choice",
  "metadata",
  "service_tier",
  "cache_control",
] as const;

/** Known to this protocol or a beta of it and to no other: they ride in `ext.messages`. */
export const PROTOCOL_FIELDS = [
  "billing_policy",
  "compaction",
  "container",
  "context_management",
  "diagnostics",
  "fallback_credit_token",
  "fallbacks",
  "inference_geo",
  "mcp_servers",
  "safeguards",
  "speed",
  "thread",
  "betas",
  "anthropic_beta",
  "anthropic_version",
  "user_profile_id",
  "workspace_id",
] as const;

export const KNOWN_TOP_LEVEL_FIELDS: ReadonlySet<string> = new Set<string>([
  ...CANONICAL,
  ...PROTOCOL_FIELDS,
]);

/** All that this wire knows, in any dialect of it. */
export const knowsField = (field: string): boolean =>
  KNOWN_TOP_LEVEL_FIELDS.has(field) || isMultiplierField(field);

/** All that a request to count tokens may carry. */
export const TOKEN_COUNT_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "output_format",
  "cache_control",
  "speed",
  "mcp_servers",
  "context_management",
]);

const FINISH_REASONS: Record<string, FinishReason> = {
  end_turn: "stop",
  stop_sequence: "stop_sequence",
  max_tokens: "length",
  model_context_window_exceeded: "context",
  tool_use: "tool_calls",
  refusal: "refusal",
  pause_turn: "pause",
};

/** A reason that is newer than us keeps its name in `detail`. */
export const parseFinishReason = (stop: string): { reason: FinishReason; detail?: string } => {
  const reason = Object.hasOwn(FINISH_REASONS, stop) ? FINISH_REASONS[stop] : undefined;
  return reason ? { reason } : { reason: "other", detail: stop };
};

const WIRE_REASONS: Record<FinishReason, string> = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  length: "max_tokens",
  context: "model_context_window_exceeded",
  tool_calls: "tool_use",
  filtered: "refusal",
  refusal: "refusal",
  pause: "pause_turn",
  other: "end_turn",
};

/** What the answer holds, apart from its end. */
export interface ResponseContents {
  hasCalls: boolean;
  hasRefusal: boolean;
}

/**
 * Calls that wait for the client are `tool_use`, whatever the upstream named it: clients run tools on nothing else. A
 * refusal in words has no block of its own here, so the end tells of it.
 */
export const formatFinishReason = (
  { reason, detail }: { reason: FinishReason; detail?: Opt<string> },
  { hasCalls, hasRefusal }: ResponseContents,
): string => {
  if (reason === "other" && detail === "compaction") return "compaction";
  if (reason !== "stop" && reason !== "other") return WIRE_REASONS[reason];
  if (hasCalls) return "tool_use";
  return hasRefusal ? "refusal" : WIRE_REASONS[reason];
};

/** What a refusal may be filed under; anything else that is said of it is an explanation. */
export const REFUSAL_CATEGORIES: ReadonlySet<string> = new Set([
  "cyber",
  "bio",
  "frontier_llm",
  "reasoning_extraction",
  "general_harms",
]);

export const failMalformed = (message: string, param: string): never =>
  fail("invalid", message, { param, code: "invalid_request" });

const CITATIONS: ReadonlySet<unknown> = new Set([
  "char_location",
  "page_location",
  "content_block_location",
  "search_result_location",
  "web_search_result_location",
]);

/** Others cannot be said here: they lack what this wire's clients look a citation up by. */
export const isNativeCitation = (citation: Json): boolean =>
  isObject(citation) && CITATIONS.has(citation["type"]);
