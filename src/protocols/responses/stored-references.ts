// What of the input only an upstream could look up, and the words for ids that name nothing here. The members that name
// what is kept stand in the table that all protocols share.
import { fail } from "../../model/error.ts";
import type { Json } from "../../plugin/index.ts";
import { STATE_RULES } from "../references/index.ts";
import { itemTypeOf } from "./item-types.ts";
import { asList, asObject, asText } from "../json-values.ts";

/** One text for every id that cannot be continued, whether it was ever made or not: clients know the code and send everything again. */
export const failPreviousResponse = (id: string): never =>
  fail("unsupported", STATE_RULES["previous_response_id"]!.message!(id), {
    code: "previous_response_not_found",
    param: "previous_response_id",
  });

/** The same for reading and deleting. */
export const failResponse = (id: string): never =>
  fail("not_found", `Response with id '${id}' not found.`, { code: "response_not_found" });

/** The reference that cannot be resolved: a client that sends whole items never meets it. */
export const failItem = (id: string, at: string): never =>
  fail(
    "invalid",
    `Item with id '${id}' not found. Set store: false, so that your client sends whole items in place of references.`,
    { code: "item_not_found", param: at },
  );

/**
 * What of the input would be looked up by its id, taken out or opened: proofs in our envelope go back to their origin
 * or nowhere, and reasoning without its secret is nothing but an id. Undefined when there is nothing to do.
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
  // An upstream that knows an item by its id misses the reasoning that stood before it.
  return orphaned ? kept.map((item) => withoutId(item)) : kept;
}

const LINKED_ITEM_TYPES = new Set([
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);

/** For an upstream that knows an item by its id, and would miss the reasoning that stood before it. */
export function withoutId(raw: Json): Json {
  const item = asObject(raw);
  if (!item || item["id"] === undefined || !LINKED_ITEM_TYPES.has(itemTypeOf(item))) return raw;
  const { id: _, ...rest } = item;
  return rest;
}
