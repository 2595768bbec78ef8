// Requests as any protocol's server half hands them over.
import type { ChatRequest } from "tollgate/plugin";

/** One that asks for nothing in particular. */
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
