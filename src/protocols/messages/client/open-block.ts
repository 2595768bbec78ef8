// One block of a provider's message while it is being received.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { fail } from "../../../model/error.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject, asText } from "../../json-values.ts";

export interface OpenMessageBlock {
  index: number;
  kind: "text" | "reasoning" | "call" | "opaque";
  /** Whether the block has received any text. */
  hasText: boolean;
  signature: string;
  redacted: string | undefined;
  /** Input from the start event of a call, which some providers send in place of deltas. */
  input: Json | undefined;
  /** Members of an opaque block received so far. */
  raw: Record<string, Json>;
  json: string;
}

export const openBlock = (block: JsonObject): OpenMessageBlock => ({
  index: -1,
  kind: "opaque",
  hasText: false,
  signature: asText(block["signature"]) ?? "",
  redacted: undefined,
  input: undefined,
  raw: {},
  json: "",
});

/** Whether only the client can answer this call. */
export const isClientCall = (block: JsonObject): boolean => {
  const { caller, toolset_name: toolset } = block;
  if (toolset) return false;
  return !isObject(caller) || caller["type"] === "direct";
};

/**
 * Appends a delta to an opaque block. Strings are concatenated and other values are replaced, so
 * deltas of unknown block types can be applied.
 */
export function appendDelta(open: OpenMessageBlock, delta: JsonObject): void {
  if (delta["type"] === "input_json_delta") {
    open.json += asText(delta["partial_json"]) ?? "";
    return;
  }
  for (const key in delta) {
    const value = delta[key];
    if (key === "type" || value === undefined) continue;
    const before = open.raw[key];
    open.raw[key] =
      typeof value === "string" && typeof before === "string" && key !== "signature"
        ? before + value
        : value;
  }
}

/** Parses the input of a block that only this protocol has. */
export function inputOf(json: string): Json {
  try {
    return parseShallow(json) as Json;
  } catch {
    return fail("upstream", "The arguments of the provider's hosted tool are not JSON.", {
      code: "bad_stream",
    });
  }
}
