// Names in this protocol and their counterparts in the common form.
import { fail } from "../../model/error.ts";
import { createSourceMemory } from "../source-memory.ts";
import { isObject } from "../json-values.ts";
import { isMultiplierField } from "../requested-amounts.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Json, Opt } from "../../model/values.ts";

export const ID = "messages";

/**
 * Stores the original JSON of a turn or block that contains more than the common form can
 * express.
 */
export const { remember: rememberSource, sourceOf } = createSourceMemory();

/** Top-level fields that the common form can express. */
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

/** Fields that only this protocol or one of its betas has. They are kept in `ext.messages`. */
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

/** Returns whether any dialect of this protocol has the field. */
export const knowsField = (field: string): boolean =>
  KNOWN_TOP_LEVEL_FIELDS.has(field) || isMultiplierField(field);

/** Fields that a token count request may contain. */
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

/** Returns the finish reason. The name of an unknown reason is kept in `detail`. */
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

/** Facts about the content of a response that affect its `stop_reason`. */
export interface ResponseContents {
  hasCalls: boolean;
  hasRefusal: boolean;
}

/**
 * Returns the `stop_reason`. If calls are waiting for the client, the reason is `tool_use`,
 * whatever the provider reported, because clients run tools only then. A refusal in text has no
 * block type here, so the reason is `refusal`.
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

/** Categories of a refusal. Any other detail is an explanation. */
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

/**
 * Whether a citation has this protocol's form. Other citations cannot be expressed here, because
 * they lack the location by which clients resolve a citation.
 */
export const isNativeCitation = (citation: Json): boolean =>
  isObject(citation) && CITATIONS.has(citation["type"]);
