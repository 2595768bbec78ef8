// Describes how backends that speak this protocol differ. It is plain data, so that a provider can
// be a row. `models` describes differences between the models of one provider. Unset options mean
// the behavior of OpenAI's own API.
import type { JsonObject } from "../../model/values.ts";
import { matchesGlob } from "../../lib/glob.ts";

export interface ChatTraits {
  /**
   * Name of the output limit that the backend understands. Default: the name that the client wrote.
   */
  maxTokens?: "max_tokens" | "max_completion_tokens";
  /** Whether the `developer` role is known. false: `system` is sent instead. */
  developerRole?: boolean;
  /**
   * Top-level fields that the backend rejects with an error. They are dropped, and the client
   * receives a warning.
   */
  dropFields?: readonly string[];
  /**
   * Top-level fields that change the result and that the backend does not support. A request with
   * such a field is tried on another candidate.
   */
  rejectFields?: readonly string[];
  /** Top-level fields to rename, for example `{ seed: "random_seed" }`. */
  renameFields?: { readonly [field: string]: string };
  /**
   * Fields to set if the client did not: `always`, only with `tools`, or only with tools in a
   * stream.
   */
  setFields?: { always?: JsonObject; tools?: JsonObject; streamedTools?: JsonObject };
  /** Whether the backend supports `strict` on tools. */
  strictTools?: boolean;
  /**
   * Whether the backend supports freeform tools. false: they become functions with one string
   * parameter, `input`.
   */
  customTools?: boolean;
  /**
   * Supported tool choices. `auto`: the model always chooses for itself. `any`: the backend's name
   * for `required`.
   */
  toolChoice?: "auto" | "any";
  /** Format of call IDs. `alnum9`: nine letters and digits. */
  toolIds?: "alnum9";
  /** Whether text can be a list of content parts. false: text is always a string. */
  contentParts?: boolean;
  /** Whether tool results can contain images. */
  toolImages?: boolean;
  /** Whether video and audio can be sent as URLs. */
  mediaUrls?: boolean;
  /** Whether the backend supports `top_k`. */
  topK?: boolean;
  /** Whether the backend supports `web_search_options`. */
  webSearch?: boolean;
  /** How the end of a reusable prefix is marked for prompt caching. */
  cacheMarks?: "cache_control" | "prompt_cache_breakpoint";
  /** Lifetime of cache writes, if the usage report does not state it. */
  cacheWriteTtl?: "5m" | "30m";
  /** Whether the completion count excludes reasoning. */
  reasoningNotInOutput?: boolean;
  /**
   * How usage in a stream is requested. `none`: the backend rejects `stream_options` with an error.
   */
  streamUsage?: "include_usage" | "none";
  /** Whether reasoning is part of the text, between tags, before the response. */
  thinkTags?: boolean;
  reasoning?: ReasoningTraits;
}

export interface ReasoningTraits {
  /**
   * Field that controls reasoning. If unset, the client's own fields are sent unchanged.
   *
   * - `effort`: `reasoning_effort`
   * - `thinking.type`: `thinking: {type}`
   * - `enable_thinking`: `enable_thinking`
   * - `chat_template_kwargs`: `enable_thinking` inside `chat_template_kwargs`
   * - `reasoning.enabled`: `reasoning: {enabled}`
   * - `reasoning`: `reasoning: {effort, enabled}`
   * - `none`: reasoning cannot be controlled
   */
  control?:
    | "effort"
    | "thinking.type"
    | "enable_thinking"
    | "chat_template_kwargs"
    | "reasoning.enabled"
    | "reasoning"
    | "none";
  /**
   * Supported efforts, from lowest to highest. `none` in the list disables reasoning. Default: any
   * effort.
   */
  efforts?: readonly string[];
  /** Whether `reasoning_effort` is supported in addition to another control. */
  alsoAcceptsEffort?: boolean;
  /** Effort for "enabled", if the backend supports only efforts. If unset, no effort is sent. */
  defaultEffort?: string;
  /** Whether reasoning can be disabled. false: the model always reasons. */
  canDisable?: false;
  /** Name of the member of `chat_template_kwargs`. Default: `enable_thinking`. */
  templateKwarg?: string;
  /** Field in which earlier reasoning is sent back. `never`: it is removed from client requests. */
  echo?: "reasoning_content" | "reasoning" | "reasoning_details" | "thinking_parts" | "never";
  /**
   * Whether every assistant message that calls tools must have the echo field, even if it is empty.
   */
  echoRequired?: boolean;
}

export interface ChatDialect extends ChatTraits {
  /**
   * Differences between models. Later matching entries add to or replace earlier entries. A pattern
   * may contain one `*`, which matches any text.
   */
  models?: readonly (ChatTraits & { of: readonly string[] })[];
}

/** Returns the traits of one model. */
export function traitsOf(dialect: ChatDialect, model: string): ChatTraits {
  if (!dialect.models) return dialect;
  let traits: ChatTraits = dialect;
  for (const { of, ...more } of dialect.models)
    if (of.some((pattern) => matchesGlob(pattern, model))) traits = { ...traits, ...more };
  return traits;
}
