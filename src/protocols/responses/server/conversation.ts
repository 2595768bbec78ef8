import type { Body } from "../../../model/values.ts";
import type { ConversationKey } from "../../../plugin/request-facts.ts";
import { isObject, asList, asText } from "../../json-values.ts";

/**
 * Returns the conversation key: the instructions, the tools, and the input up to the first user
 * message.
 */
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
