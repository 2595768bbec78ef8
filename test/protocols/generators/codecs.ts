// Every codec for chats, by name, in its plain dialect.
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import type { Protocol } from "tollgate/plugin";

export const chats: { readonly [id: string]: Protocol<"chat"> } = {
  "chat-completions": chatCompletions(),
  messages: messages(),
  responses: responses(),
  gemini: gemini(),
};

/** What a client of each writes at least. */
export const LEAST: { readonly [id: string]: object } = {
  "chat-completions": { messages: [{ role: "user", content: "Hi" }] },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 100 },
  responses: { input: "Hi" },
  gemini: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

/** What a client of each adds to be told thoughts and counts, where it has to ask for them. */
export const TELL_ALL = {
  stream_options: { include_usage: true },
  generationConfig: { thinkingConfig: { includeThoughts: true } },
};

/** What providers speak: all of them. */
export const upstreams = { ...chats };
