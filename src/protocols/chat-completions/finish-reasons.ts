// Why an answer ended: this wire's words, and those that its imitators use.
import { fail } from "../../model/error.ts";
import type { Finish, FinishReason } from "../../model/event.ts";

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
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
export function parseFinishReason(word: string): Finish {
  const known = word.toLowerCase();
  if (FAILURES.has(known))
    fail(
      known === "insufficient_system_resource" ? "overloaded" : "upstream",
      `The provider gave up in the middle of its answer (${word}).`,
      { code: "upstream_failed" },
    );
  const reason = Object.hasOwn(FINISH_REASONS, known) ? FINISH_REASONS[known] : undefined;
  return reason ? { type: "finish", reason } : { type: "finish", reason: "other", detail: word };
}

const WIRE_REASONS: Readonly<Record<FinishReason, string>> = {
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
export function formatFinishReason(
  finish: Finish,
  contents: { calls: boolean; refusal: boolean; legacy: boolean },
): string {
  const { reason } = finish;
  if (contents.calls && (reason === "stop" || reason === "tool_calls" || reason === "other"))
    return contents.legacy ? "function_call" : "tool_calls";
  // A refusal in the model's own words is an answer; one without words is a filter's.
  return reason === "refusal" && !contents.refusal ? "content_filter" : WIRE_REASONS[reason];
}
