import type { Body } from "../../../model/values.ts";
import type { Conversation } from "../../../plugin/survey.ts";
import { isObject, list, text } from "../../json.ts";

/** Its tools and all up to the first turn of the user. */
export function conversation(body: Body): Conversation {
  const messages = list(body["messages"]);
  const first = messages.findIndex((message) => isObject(message) && message["role"] === "user");
  return {
    name: text(body["prompt_cache_key"]),
    begins: [body["tools"], ...(first < 0 ? [] : messages.slice(0, first + 1))],
  };
}
