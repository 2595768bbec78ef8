// Input items that only a provider could look up, and the errors for IDs that cannot be resolved.
// The members that refer to stored state are in the table that all protocols share.
import { fail } from "../../model/error.ts";
import type { Json } from "../../plugin/index.ts";
import { STATE_RULES } from "../references/index.ts";
import { itemTypeOf } from "./constants.ts";
import { asList, asObject, asText } from "../json-values.ts";

/**
 * Throws the error for a response that cannot be continued. The message is the same for every ID,
 * whether or not it ever existed. Clients recognize the code and send the whole conversation.
 */
export const failPreviousResponse = (id: string): never =>
  fail("unsupported", STATE_RULES["previous_response_id"]!.message!(id), {
    code: "previous_response_not_found",
    param: "previous_response_id",
  });

/** Throws the error for reading or deleting an unknown response. */
export const failResponse = (id: string): never =>
  fail("not_found", `Response with id '${id}' not found.`, { code: "response_not_found" });

/**
 * Throws the error for an item reference that cannot be resolved. Clients that send whole items
 * never receive it.
 */
export const failItem = (id: string, at: string): never =>
  fail(
    "invalid",
    `Item with id '${id}' not found. Set store: false, so that your client sends whole items instead of references.`,
    { code: "item_not_found", param: at },
  );

/**
 * Removes or opens input items that a provider would look up by ID. A proof in a gateway envelope
 * is sent only to its origin. Reasoning without encrypted content is nothing but an ID. Returns
 * undefined if nothing changed.
 */
export function withoutReferences(
  input: unknown,
  opened: (encrypted: string) => string | null | undefined,
  relayed: boolean,
): Json[] | undefined {
  let changed = false;
  let orphaned = false;
  const kept: Json[] = [];
  asList(input).forEach((raw, i) => {
    const item = asObject(raw);
    const kind = item && itemTypeOf(item);
    if (kind === "item_reference") failItem(asText(item!["id"]) ?? "", `input[${i}]`);
    if (kind === "image_generation_call" && item!["result"] == null && !relayed) {
      changed = orphaned = true;
      return;
    }
    if (kind !== "reasoning") {
      kept.push(raw);
      return;
    }
    const encrypted = asText(item!["encrypted_content"]);
    if (encrypted === undefined) {
      if (relayed || item!["id"] == null) kept.push(raw);
      else changed = orphaned = true;
      return;
    }
    const data = opened(encrypted);
    if (data === undefined) kept.push(raw);
    else {
      changed = true;
      if (data !== null) kept.push({ ...item, encrypted_content: data });
    }
  });
  if (!changed) return undefined;
  // A provider that recognizes an item by its ID would miss the reasoning before it.
  return orphaned ? kept.map((item) => withoutId(item)) : kept;
}

const LINKED_ITEM_TYPES = new Set([
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);

/**
 * Removes an item's ID. A provider that recognizes the item by its ID would miss the reasoning
 * before it.
 */
export function withoutId(raw: Json): Json {
  const item = asObject(raw);
  if (!item || item["id"] === undefined || !LINKED_ITEM_TYPES.has(itemTypeOf(item))) return raw;
  const { id: _, ...rest } = item;
  return rest;
}
