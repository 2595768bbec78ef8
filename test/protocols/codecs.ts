// Every codec for chats, by name, in its plain dialect.
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import type { Protocol } from "tollgate/plugin";

export const chats: { readonly [id: string]: Protocol<"chat"> } = {
  "chat-completions": chatCompletions(),
  messages: messages(),
  responses: responses(),
};
