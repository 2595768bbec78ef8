// What differs between backends that speak this wire. Data, so that a provider can be a row; where the models of one
// provider differ, `models` says how. Everything absent is what OpenAI itself does.
import type { JsonObject } from "../../model/values.ts";
import { matchesGlob } from "../../lib/glob.ts";

export interface ChatTraits {
  /** The one name of the output limit that is understood. Absent: whichever the client wrote. */
  maxTokens?: "max_tokens" | "max_completion_tokens";
  /** false: the role is unknown, `system` is said instead. */
  developerRole?: boolean;
  /** Top-level fields that are answered with an error; dropped, and the client is told. */
  dropFields?: readonly string[];
  /** Top-level fields that change what the model must do and that it cannot: another candidate is tried. */
  rejectFields?: readonly string[];
  /** Top-level fields by another name: { seed: "random_seed" }. */
  renameFields?: { readonly [field: string]: string };
  /** Set where the client did not: always, with tools, with tools in a stream. */
  setFields?: { always?: JsonObject; tools?: JsonObject; streamedTools?: JsonObject };
  /** false: `strict` on tools is unknown. */
  strictTools?: boolean;
  /** false: no freeform tools; they become functions with one string, `input`. */
  customTools?: boolean;
  /** auto: the model always chooses for itself. any: what others call `required`. */
  toolChoice?: "auto" | "any";
  /** alnum9: call ids are nine letters and digits. */
  toolIds?: "alnum9";
  /** false: texts are strings, never lists of parts. */
  contentParts?: boolean;
  /** true: tool results may hold images. */
  toolImages?: boolean;
  /** true: videos and sounds by address are understood. */
  mediaUrls?: boolean;
  /** true: `top_k` is understood. */
  topK?: boolean;
  /** true: `web_search_options` is understood. */
  webSearch?: boolean;
  /** How the end of a reusable prefix is marked. */
  cacheMarks?: "cache_control" | "prompt_cache_breakpoint";
  /** How long what is written to a cache stays there, where the count does not say. */
  cacheWriteTtl?: "5m" | "30m";
  /** Reasoning is not counted in the completion. */
  reasoningNotInOutput?: boolean;
  /** none: `stream_options` is answered with an error. */
  streamUsage?: "include_usage" | "none";
  /** Reasoning stands in the text, between tags, before the answer. */
  thinkTags?: boolean;
  reasoning?: ReasoningTraits;
}

export interface ReasoningTraits {
  /**
   * How a model is told to think: `reasoning_effort` · `thinking: {type}` · `enable_thinking` · the same inside
   * `chat_template_kwargs` · `reasoning: {enabled}` · `reasoning: {effort, enabled}` · not at all. Absent: the client's
   * own words pass.
   */
  control?:
    | "effort"
    | "thinking.type"
    | "enable_thinking"
    | "chat_template_kwargs"
    | "reasoning.enabled"
    | "reasoning"
    | "none";
  /** Efforts that are known, from low to high; `none` among them switches thinking off. Absent: any. */
  efforts?: readonly string[];
  /** Beside another control, `reasoning_effort` is understood too. */
  alsoAcceptsEffort?: boolean;
  /** What "enabled" means where only efforts are known; absent: saying nothing. */
  defaultEffort?: string;
  /** false: it always thinks. */
  canDisable?: false;
  /** The member of `chat_template_kwargs`; absent: `enable_thinking`. */
  templateKwarg?: string;
  /** Where earlier reasoning goes back; `never`: it is taken out of what clients send. */
  echo?: "reasoning_content" | "reasoning" | "reasoning_details" | "thinking_parts" | "never";
  /** Every assistant message that calls tools must have it, were it empty. */
  echoRequired?: boolean;
}

export interface ChatDialect extends ChatTraits {
  /** Where models differ: the last that fits adds to, or replaces, what stands above it. One `*` stands for anything. */
  models?: readonly (ChatTraits & { of: readonly string[] })[];
}

/** What holds for one model. */
export function traitsOf(dialect: ChatDialect, model: string): ChatTraits {
  if (!dialect.models) return dialect;
  let traits: ChatTraits = dialect;
  for (const { of, ...more } of dialect.models)
    if (of.some((pattern) => matchesGlob(pattern, model))) traits = { ...traits, ...more };
  return traits;
}
