// The protocol's name and the form of its IDs.
import { createHash } from "node:crypto";
import type { Block, JsonObject } from "../../plugin/index.ts";
import { asText } from "../json-values.ts";
import { createSourceMemory } from "../source-memory.ts";
import type { ModelInfo } from "../../model/facts.ts";
import { traitsOf, type ChatDialect } from "../chat-completions/dialect.ts";
import { reasoningSupportOf, type ReasoningSupport } from "../reasoning-support.ts";

/**
 * Origin that marks proofs to send without an envelope, and items and parts that only this protocol
 * has.
 */
export const ORIGIN = "responses";

/**
 * Returns a call ID. This protocol links calls and results by an ID of at most 64 characters, so a
 * longer ID is replaced by its digest. The digest depends only on the ID, so it is the same at both
 * ends of the link and in every later turn.
 */
export const callId = (id: string): string => (id.length > 64 ? `call_${digestText(id)}` : id);

/** Returns a digest of any text, with 43 characters. */
export const digestText = (of: string): string =>
  createHash("sha256").update(of).digest("base64url");

export const { remember: rememberSource, sourceOf } = createSourceMemory();

/** Types of input items, and opaque blocks for items that other protocols cannot express. */
export const isInstructionRole = (role: unknown): boolean =>
  role === "system" || role === "developer";

/**
 * Returns the type of an item. The short form of a message has no type, and a reference may contain
 * only its ID.
 */
export const itemTypeOf = (item: JsonObject): string =>
  asText(item["type"]) ??
  (item["role"] !== undefined ? "message" : item["id"] !== undefined ? "item_reference" : "");

/**
 * Type of the block that represents a stored prompt among the turns. In the API a stored prompt is
 * a separate field.
 */
export const STORED_PROMPT = "stored_prompt";

/** Returns an opaque block. Other protocols must reject it, because the response depends on it. */
export const toOpaqueBlock = (raw: JsonObject): Block => ({ type: "opaque", origin: ORIGIN, raw });

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
   * is newer. Some clients read it as `response.reasoning_text`, and other clients do not support
   * it.
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
