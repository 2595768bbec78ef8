import type { Body } from "../../../model/values.ts";
import type { ConversationKey } from "../../../plugin/request-facts.ts";
import { isObject, asList, asText } from "../../json-values.ts";

/** Its instructions, its tools and all of the input up to the first turn of the user. */
export function conversationKey(body: Body): ConversationKey {
  const { input } = body;
  const items = asList(input);
  const first = items.findIndex((item) => isObject(item) && item["role"] === "user");
  return {
    id: asText(body["prompt_cache_key"]),
    prefix: [
      body["instructions"],
      body["tools"],
      ...(typeof input === "string" ? [input] : items.slice(0, first + 1)),
    ],
  };
}
