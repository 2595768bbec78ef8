// Types of input items, and opaque blocks for items that other protocols cannot express.
import type { Block, JsonObject } from "../../plugin/index.ts";
import { asText } from "../json-values.ts";
import { ORIGIN } from "./constants.ts";

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
