// The background mode of OpenAI's responses.
import type { JsonObject } from "../../model/values.ts";
import { jsonResponse, type ScriptedResponse } from "../upstream/scripted-response.ts";
import type { BackgroundApiState, BackgroundFormat, FakeResponse } from "./background-format.ts";

/** The background mode of OpenAI's responses. */
export const openAiBackgroundFormat: BackgroundFormat = {
  handle(state, { method, route, body }) {
    const [, kind, id, action] = route.split("/");
    if (kind !== "responses") return undefined;
    if (id === undefined) return create(state, body);
    const response = method === "GET" && !action ? state.advance(id) : state.responses.get(id);
    if (!response) return rejected("No such response.", 404);
    if (method === "DELETE") {
      state.responses.delete(id);
      return jsonResponse({ id, object: "response", deleted: true });
    }
    if (action === "cancel" && !state.cancel(id) && response.state !== "canceled")
      return rejected("The response has ended.");
    return jsonResponse(render(response, state.text));
  },
};

function create(state: BackgroundApiState, body: Buffer): ScriptedResponse {
  const fields = JSON.parse(body.toString()) as JsonObject;
  if (fields["background"] !== true || fields["store"] !== true)
    return rejected("Expected background and store.");
  if (fields["stream"] === true) return rejected("Expected a request without a stream.");
  return jsonResponse(render(state.create(fields), state.text));
}

const rejected = (message: string, status = 400): ScriptedResponse =>
  jsonResponse(
    { error: { message, type: "invalid_request_error", param: null, code: null } },
    status,
  );

const STATUS = {
  queued: "queued",
  running: "in_progress",
  completed: "completed",
  failed: "failed",
  canceled: "cancelled",
};

function render({ id, body, state }: FakeResponse, text: string): JsonObject {
  const isComplete = state === "completed";
  const message = {
    id: `msg_${id.replace("resp_", "")}`,
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
  };
  return {
    id,
    object: "response",
    created_at: 1_790_000_000,
    model: body["model"] ?? null,
    background: true,
    store: true,
    status: STATUS[state],
    error: state === "failed" ? { code: "server_error", message: "The model failed." } : null,
    incomplete_details: null,
    output: isComplete ? [message] : [],
    usage: isComplete
      ? {
          input_tokens: 11,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 7,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 18,
        }
      : null,
  };
}
