import type { Body } from "../../../model/values.ts";
import type { Conversation } from "../../../plugin/survey.ts";
import { isObject, list, text } from "../../json.ts";

/** Its instructions, its tools and all of the input up to the first turn of the user. */
export function conversation(body: Body): Conversation {
  const { input } = body;
  const items = list(input);
  const first = items.findIndex((item) => isObject(item) && item["role"] === "user");
  return {
    name: text(body["prompt_cache_key"]),
    begins: [
      body["instructions"],
      body["tools"],
      ...(typeof input === "string" ? [input] : items.slice(0, first + 1)),
    ],
  };
}
