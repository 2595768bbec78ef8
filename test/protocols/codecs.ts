// Every codec for chats, by name, in its plain dialect.
import { withServer as gemini } from "./gemini/codec.ts";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import type { Protocol } from "tollgate/plugin";

export const chats: { readonly [id: string]: Protocol<"chat"> } = {
  "chat-completions": chatCompletions(),
  messages: messages(),
  responses: responses(),
};

/** Those that only providers speak, too. */
export const upstreams: { readonly [id: string]: Protocol<"chat"> } = { ...chats, gemini };
