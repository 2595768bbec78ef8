import type { Body, Field, Opt } from "../../../model/values.ts";
import type { ConversationKey } from "../../../plugin/request-facts.ts";
import { isObject, asList, parseObject, asText } from "../../json-values.ts";

/**
 * Claude Code includes its session in the user ID, either as `_session_` and an ID, or as JSON
 * text.
 */
const SESSION = /_session_([\w-]{8,64})$/;

/**
 * Returns the conversation key: the system prompt, the tools, and the first message, which is the
 * user's.
 */
export function conversationKey(body: Body): ConversationKey {
  const [first] = asList(body["messages"]);
  return {
    id: sessionOf(body["metadata"]),
    prefix: [
      blocks(body["system"]),
      body["tools"],
      isObject(first) ? blocks(first["content"]) : undefined,
    ],
  };
}

/**
 * Treats a string as one text block, because clients change it to a block when they add a cache
 * mark.
 */
const blocks = (content: Opt<Field>): Opt<Field> =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

function sessionOf(metadata: unknown): string | undefined {
  const user = isObject(metadata) ? asText(metadata["user_id"]) : undefined;
  if (user === undefined || user.length > 1_024) return undefined;
  if (!user.startsWith("{")) return SESSION.exec(user)?.[1];
  return asText(parseObject(user)?.["session_id"]);
}
