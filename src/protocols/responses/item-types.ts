// What an input item is, and the words for those that other protocols cannot say.
import type { Block, JsonObject } from "../../plugin/index.ts";
import { asText } from "../json-values.ts";
import { ORIGIN } from "./constants.ts";

export const isInstructionRole = (role: unknown): boolean =>
  role === "system" || role === "developer";

/** The easy form of a message has no type, and a reference may have nothing but its id. */
export const itemTypeOf = (item: JsonObject): string =>
  asText(item["type"]) ??
  (item["role"] !== undefined ? "message" : item["id"] !== undefined ? "item_reference" : "");

/** The type under which a stored prompt stands among the turns; on the wire it has a field of its own. */
export const STORED_PROMPT = "stored_prompt";

/** What other protocols must refuse, because the answer depends on it. */
export const toOpaqueBlock = (raw: JsonObject): Block => ({ type: "opaque", origin: ORIGIN, raw });
