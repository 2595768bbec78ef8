import { defineFrontend } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { embeddings } from "./embedding.ts";

export default defineFrontend({
  api: 1,
  name: "both",
  summary: "Chats and vectors under one name",
  setup: () => ({
    protocol: chatCompletions(),
    routes: [
      { method: "POST", path: "/both/chat", op: "generate" },
      { method: "POST", path: "/both/vectors", op: "generate", protocol: embeddings() },
    ],
  }),
});
