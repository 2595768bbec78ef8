// One block of an upstream's message while it grows.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { fail } from "../../../model/error.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject, asText } from "../../json-values.ts";

export interface OpenMessageBlock {
  index: number;
  kind: "text" | "reasoning" | "call" | "opaque";
  /** Something was said in it. */
  hasText: boolean;
  signature: string;
  redacted: string | undefined;
  /** What stood in the start of a call in place of deltas. */
  input: Json | undefined;
  /** An opaque block while it grows. */
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

/** A call that only the client can answer. */
export const isClientCall = (block: JsonObject): boolean => {
  const { caller, toolset_name: toolset } = block;
  if (toolset) return false;
  return !isObject(caller) || caller["type"] === "direct";
};

/** Strings grow, everything else is replaced: so every delta of a block that is newer than us finds its place. */
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

/** What a block that only this wire knows was called with. */
export function inputOf(json: string): Json {
  try {
    return parseShallow(json) as Json;
  } catch {
    return fail(
      "upstream",
      "The provider's own tool was called with arguments that are not JSON.",
      {
        code: "bad_stream",
      },
    );
  }
}
