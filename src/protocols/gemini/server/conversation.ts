import type { Body, Field, Opt } from "../../../model/values.ts";
import type { ConversationKey } from "../../../plugin/request-facts.ts";
import { isObject, asList } from "../../json-values.ts";

/**
 * Returns the key that identifies a conversation: its instructions, its tools, and its first turn,
 * which is the user's. Either spelling is accepted.
 */
export function conversationKey(body: Body): ConversationKey {
  const [first] = asList(body["contents"]);
  return {
    prefix: [
      parts(body["systemInstruction"] ?? body["system_instruction"]),
      body["tools"],
      isObject(first) ? parts(first) : undefined,
    ],
  };
}

const parts = (content: Opt<Field>): Opt<Field> =>
  isObject(content) ? (content["parts"] ?? content) : content;
