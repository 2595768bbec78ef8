import type { ModelInfo } from "../../model/facts.ts";
import { traitsOf, type ChatDialect } from "../chat-completions/dialect.ts";
import { reasoningSupportOf, type ReasoningSupport } from "../reasoning-support.ts";

/** How one upstream's wire differs from the documented one, and how ours is shown to clients. */
export interface ResponsesDialect {
  /** The same backend on chat completions: what its models take about thinking does not depend on the wire. */
  chatDialect?: ChatDialect;
  /** Top-level fields that it answers with an error: left out, and said so. */
  dropFields?: readonly string[];
  /** false: it keeps nothing and knows no `store`. */
  store?: false;
  /**
   * How reasoning that is no digest is shown to clients. Every reader knows `summary`; `text` is the newer name, which
   * some know as `response.reasoning_text` and some do not know at all.
   */
  reasoning?: "summary" | "text";
}

/** Words that this wire says as chat completions does; other ways of telling a model say nothing of these. */
const SHARED_CONTROLS: ReadonlySet<string | undefined> = new Set(["effort", "reasoning", "none"]);

export function reasoningSupportFor(
  { chatDialect }: ResponsesDialect,
  info: ModelInfo,
  model: string,
): ReasoningSupport {
  const row = chatDialect && traitsOf(chatDialect, model).reasoning;
  return reasoningSupportOf(info, SHARED_CONTROLS.has(row?.control) ? row : undefined);
}
