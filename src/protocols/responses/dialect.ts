import type { ModelInfo } from "../../model/facts.ts";
import { traitsOf, type ChatDialect } from "../chat-completions/dialect.ts";
import { reasoningSupportOf, type ReasoningSupport } from "../reasoning-support.ts";

/**
 * Differences between a backend and the documented protocol, and how reasoning is shown to clients.
 */
export interface ResponsesDialect {
  /**
   * Dialect of the same backend for chat completions. The reasoning support of its models is the
   * same in both protocols.
   */
  chatDialect?: ChatDialect;
  /**
   * Top-level fields that the backend rejects with an error. The gateway drops them and warns the
   * client.
   */
  dropFields?: readonly string[];
  /** `false`: the backend stores nothing and has no `store` field. */
  store?: false;
  /**
   * How reasoning that is not a summary is shown to clients. All clients can read `summary`. `text`
   * is newer. Some clients read it as `response.reasoning_text`, and others do not support it.
   */
  reasoning?: "summary" | "text";
}

/**
 * Reasoning controls that this protocol shares with chat completions. Traits with any other control
 * do not apply to this protocol.
 */
const SHARED_CONTROLS: ReadonlySet<string | undefined> = new Set(["effort", "reasoning", "none"]);

export function reasoningSupportFor(
  { chatDialect }: ResponsesDialect,
  info: ModelInfo,
  model: string,
): ReasoningSupport {
  const row = chatDialect && traitsOf(chatDialect, model).reasoning;
  return reasoningSupportOf(info, SHARED_CONTROLS.has(row?.control) ? row : undefined);
}
