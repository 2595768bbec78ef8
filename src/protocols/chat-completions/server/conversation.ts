import type { Body } from "../../../model/values.ts";
import type { ConversationKey } from "../../../plugin/request-facts.ts";
import { isObject, asList, asText } from "../../json-values.ts";

/**
 * Returns the key that identifies a conversation: its tools and all messages up to the first user
 * message.
 */
export function conversationKey(body: Body): ConversationKey {
  const messages = asList(body["messages"]);
  const first = messages.findIndex((message) => isObject(message) && message["role"] === "user");
  return {
    id: asText(body["prompt_cache_key"]),
    prefix: [body["tools"], ...(first < 0 ? [] : messages.slice(0, first + 1))],
  };
}
