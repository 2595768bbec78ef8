// What of the input only an upstream could look up, and the words for ids that name nothing here. The members that name
// what is kept stand in the table that all protocols share.
import { fail } from "../../model/error.ts";
import type { Json } from "../../plugin/index.ts";
import { STATE } from "../look/index.ts";
import { kindOf } from "./item-kind.ts";
import { list, object, text } from "../json.ts";

/** One text for every id that cannot be continued, whether it was ever made or not: clients know the code and send everything again. */
export const noPrevious = (id: string): never =>
  fail("unsupported", STATE["previous_response_id"]!.says!(id), {
    code: "previous_response_not_found",
    param: "previous_response_id",
  });

/** The same for reading and deleting. */
export const noResponse = (id: string): never =>
  fail("not_found", `Response with id '${id}' not found.`, { code: "response_not_found" });

/** The reference that cannot be resolved: a client that sends whole items never meets it. */
export const noItem = (id: string, at: string): never =>
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
  list(input).forEach((raw, i) => {
    const item = object(raw);
    const kind = item && kindOf(item);
    if (kind === "item_reference") noItem(text(item!["id"]) ?? "", `input[${i}]`);
    if (kind === "image_generation_call" && item!["result"] == null && !relayed) {
      changed = orphaned = true;
      return;
    }
    if (kind !== "reasoning") {
      kept.push(raw);
      return;
    }
    const encrypted = text(item!["encrypted_content"]);
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
  return orphaned ? kept.map((item) => nameless(item)) : kept;
}

const LINKED = new Set([
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);

/** For an upstream that knows an item by its id, and would miss the reasoning that stood before it. */
export function nameless(raw: Json): Json {
  const item = object(raw);
  if (!item || item["id"] === undefined || !LINKED.has(kindOf(item))) return raw;
  const { id: _, ...rest } = item;
  return rest;
}
