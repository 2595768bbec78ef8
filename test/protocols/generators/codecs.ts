// Every chat codec by name, in its default dialect.
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

/** Minimal client request of each. */
export const LEAST: { readonly [id: string]: object } = {
  "chat-completions": { messages: [{ role: "user", content: "Hi" }] },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 100 },
  responses: { input: "Hi" },
  gemini: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

/** A client's additional fields that request reasoning and counts, where necessary. */
export const TELL_ALL = {
  stream_options: { include_usage: true },
  generationConfig: { thinkingConfig: { includeThoughts: true } },
};

/** Protocols of providers: all of them. */
export const upstreams = { ...chats };
