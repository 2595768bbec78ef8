import type { Body, Field, Opt } from "../../../model/values.ts";
import type { Conversation } from "../../../plugin/survey.ts";
import { isObject, list } from "../../json.ts";

/** Its instructions, its tools and its first turn, which is the user's, by whichever of their two names. */
export function conversation(body: Body): Conversation {
  const [first] = list(body["contents"]);
  return {
    begins: [
      parts(body["systemInstruction"] ?? body["system_instruction"]),
      body["tools"],
      isObject(first) ? parts(first) : undefined,
    ],
  };
}

const parts = (content: Opt<Field>): Opt<Field> =>
  isObject(content) ? (content["parts"] ?? content) : content;
