// What a request asks to be kept, or to be found again. An upstream's key is shared by all who use the gateway, so an
// id that one of them made, another could name: each such field is listed here, once, for whoever must refuse it.
import { fail } from "../../model/error.ts";
import type { Feature, Json, Opt } from "../../plugin/index.ts";
import { kindOf } from "./items.ts";
import { list, object, text } from "./wire.ts";

export interface Kept {
  feature: Feature;
  /** As the protocol spells paths. */
  param: string;
  /** What to send in its place. */
  instead: string;
}

type Field = (name: string) => unknown;

/** Everything in a body that only an upstream's memory could make sense of; not previous_response_id, which has words of its own. */
export function keptIn(field: Field): Kept[] {
  const found: Kept[] = [];
  const see = (feature: Feature, param: string, instead: string) =>
    found.push({ feature, param, instead });
  if (field("conversation") != null)
    see("state.conversation", "conversation", "Send the whole conversation in input.");
  if (field("background") === true)
    see("state.background", "background", "Ask with stream: true and wait for the answer.");
  if (field("prompt") != null)
    see("state.prompt", "prompt", "Send the prompt's text in instructions and input.");
  if (object(field("prompt_cache_options"))?.["comparison_response_id"] != null)
    see(
      "state.previous_response_id",
      "prompt_cache_options.comparison_response_id",
      "Leave it out.",
    );
  list(field("input")).forEach((raw, i) => {
    const item = object(raw);
    for (const key of ["content", "output"])
      list(item?.[key]).forEach((part, j) => {
        if (object(part)?.["file_id"] != null)
          see("state.file", `input[${i}].${key}[${j}].file_id`, FILE);
      });
    const shot = object(item?.["output"]);
    if (shot?.["file_id"] != null) see("state.file", `input[${i}].output.file_id`, FILE);
  });
  list(field("tools")).forEach((tool, i) => resources(tool, `tools[${i}]`, see));
  return found;
}

const FILE = "Send the file's bytes or its address.";

/** Stores, containers and files that a hosted tool is pointed at, however deep its declaration nests them. */
function resources(
  value: Opt<Json>,
  at: string,
  see: (feature: Feature, param: string, instead: string) => void,
): void {
  const o = object(value);
  if (!o || o["type"] === "function" || o["type"] === "custom") return;
  for (const key in o) {
    const where = `${at}.${key}`;
    const inner = o[key];
    if (key === "vector_store_ids" || key === "collection_ids")
      see("state.vector_store", where, "Send the documents themselves.");
    else if (key === "container_id" || (key === "container" && typeof inner === "string"))
      see("state.container", where, 'Use container: { "type": "auto" }.');
    else if (key === "file_id" || key === "file_ids") see("state.file", where, FILE);
    else if (key !== "schema" && key !== "parameters") {
      for (const [n, one] of list(inner).entries()) resources(one, `${where}[${n}]`, see);
      resources(inner, where, see);
    }
  }
}

/** One text for every id that cannot be continued, whoever made it, if anybody did: clients know the code and send everything again. */
export const noPrevious = (id: string): never =>
  fail(
    "unsupported",
    `Previous response with id '${id}' not found. Send the whole conversation in input instead.`,
    { code: "previous_response_not_found", param: "previous_response_id" },
  );

/** The same for reading and deleting. */
export const noResponse = (id: string): never =>
  fail("not_found", `Response with id '${id}' not found.`, { code: "response_not_found" });

/** The reference that nobody can resolve: a client that sends whole items never meets it. */
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

function nameless(raw: Json): Json {
  const item = object(raw);
  if (!item || item["id"] === undefined || !LINKED.has(kindOf(item))) return raw;
  const { id: _, ...rest } = item;
  return rest;
}
