// Constants of this protocol, and the data that its server half and client half exchange.
import { createHash } from "node:crypto";
import { parseShallow } from "../../lib/json/json-scanner.ts";
import { fail } from "../../model/error.ts";
import type { Finish, FinishReason } from "../../model/event.ts";
import type { Json, Opt, Proof } from "../../plugin/index.ts";
import { createSourceMemory } from "../source-memory.ts";

export const ID = "chat-completions";

export const { remember: rememberSource, sourceOf } = createSourceMemory();

/**
 * Returns the content of a proof of this protocol. The proof may have come in an envelope that a
 * client wrote, so anything other than an object or a list is ignored.
 */
export function proofContent(proof: Proof): Json | undefined {
  try {
    const held = parseShallow(proof.data);
    return typeof held === "object" && held !== null ? (held as Json) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the words of the given texts as a set. A space-separated list of names is easier to read
 * than an array.
 */
export const splitNames = (...sentences: readonly string[]): ReadonlySet<string> =>
  new Set(sentences.flatMap((s) => s.split(" ")));

/** Returns letters and digits derived from a text. The same text always yields the same result. */
export function digest(of: string, length: number): string {
  const hex = createHash("sha256").update(of).digest("hex");
  return BigInt(`0x${hex}`).toString(36).padStart(49, "0").slice(-length);
}

/** Returns a call's arguments as a string. Some backends send them as an object. */
export const argumentsText = (v: Opt<Json>): string =>
  typeof v === "string" ? v : v === undefined || v === null ? "" : JSON.stringify(v);

/** Converts finish reasons of this protocol, including finish reasons of its compatible APIs. */
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

/** Finish reasons that report a failure instead of an end. */
const FAILURES = new Set(["error", "abort", "network_error", "insufficient_system_resource"]);

/**
 * Parses a finish reason. An unknown reason, which may be newer than the gateway, is kept in
 * `detail`. Throws if the reason reports a failure.
 */
export function parseFinishReason(word: string): Finish {
  const known = word.toLowerCase();
  if (FAILURES.has(known))
    fail(
      known === "insufficient_system_resource" ? "overloaded" : "upstream",
      `The provider stopped in the middle of its response (${word}).`,
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

/**
 * Returns the finish reason for a client. If the response has tool calls, the reason is
 * `tool_calls`, because clients run tools only for this reason.
 */
export function formatFinishReason(
  finish: Finish,
  contents: { calls: boolean; refusal: boolean; legacy: boolean },
): string {
  const { reason } = finish;
  if (contents.calls && (reason === "stop" || reason === "tool_calls" || reason === "other"))
    return contents.legacy ? "function_call" : "tool_calls";
  // A refusal with text from the model is a regular response. A refusal without text comes from a
  // content filter.
  return reason === "refusal" && !contents.refusal ? "content_filter" : WIRE_REASONS[reason];
}
