import { defineFrontend } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { fingerprints } from "./fingerprint.ts";

export default defineFrontend({
  api: 1,
  name: "both",
  summary: "Chats and prints under one name",
  setup: () => ({
    protocol: chatCompletions(),
    routes: [
      { method: "POST", path: "/both/chat", actionType: "generate" },
      { method: "POST", path: "/both/prints", actionType: "generate", protocol: fingerprints() },
    ],
  }),
});
