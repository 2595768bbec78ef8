// Requests as they are decoded by the server half of any protocol.
import type { ChatRequest } from "tollgate/plugin";

/** A request without special features. */
export const createChatRequest = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  operation: "chat",
  model: "m",
  stream: false,
  instructions: [],
  turns: [{ role: "user", blocks: [{ type: "text", text: "Hi" }] }],
  tools: [],
  output: {},
  sampling: {},
  reasoning: { mode: "auto" },
  state: {},
  rest: {},
  ext: {},
  ...more,
});
