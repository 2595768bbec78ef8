// Why an answer ended: this wire's words, and those that its imitators use.
import { fail } from "../../model/error.ts";
import type { Finish, FinishReason } from "../../model/event.ts";

const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  end: "stop",
  eos: "stop",
  end_turn: "stop",
  stop_sequence: "stop_sequence",
  complete: "stop",
  length: "length",
  max_tokens: "length",
  model_length: "context",
  tool_calls: "tool_calls",
  tool_use: "tool_calls",
  function_call: "tool_calls",
  content_filter: "filtered",
  safety: "filtered",
  sensitive: "filtered",
  guardrail_intervened: "filtered",
  refusal: "filtered",
};

/** Words that say that there was no end, only a failure. */
const FAILURES = new Set(["error", "abort", "network_error", "insufficient_system_resource"]);

/** A word that is newer than us keeps itself in `detail`. */
export function finishOf(word: string): Finish {
  const known = word.toLowerCase();
  if (FAILURES.has(known))
    fail(
      known === "insufficient_system_resource" ? "overloaded" : "upstream",
      `The provider gave up in the middle of its answer (${word}).`,
      { code: "upstream_failed" },
    );
  const reason = Object.hasOwn(REASONS, known) ? REASONS[known] : undefined;
  return reason ? { type: "finish", reason } : { type: "finish", reason: "other", detail: word };
}

const WORDS: Readonly<Record<FinishReason, string>> = {
  stop: "stop",
  stop_sequence: "stop",
  length: "length",
  context: "length",
  tool_calls: "tool_calls",
  filtered: "content_filter",
  refusal: "stop",
  pause: "length",
  other: "stop",
};

/** What a client of this wire is told. Calls that wait for it are `tool_calls`: clients run tools on nothing else. */
export function wordOf(
  finish: Finish,
  said: { calls: boolean; refusal: boolean; legacy: boolean },
): string {
  const { reason } = finish;
  if (said.calls && (reason === "stop" || reason === "tool_calls" || reason === "other"))
    return said.legacy ? "function_call" : "tool_calls";
  // A refusal in the model's own words is an answer; one without words is a filter's.
  return reason === "refusal" && !said.refusal ? "content_filter" : WORDS[reason];
}
