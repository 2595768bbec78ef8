// Client requests for the cases of a middleware, in the two protocols that each case runs in.
import type { AskOptions, ClientAnswer } from "./start-gateway.ts";

/**
 * A request of a client: one text, or alternating turns of the user and the model, with an optional
 * system prompt. `result` is the result of a tool call after the last turn.
 */
export type CaseRequest =
  | string
  | { readonly system?: string; readonly turns: readonly string[]; readonly result?: string };

const caseTurns = (one: CaseRequest): readonly string[] =>
  typeof one === "string" ? [one] : one.turns;
const toMessages = (one: CaseRequest) =>
  caseTurns(one).map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }));
const toolResultOf = (one: CaseRequest) => (typeof one === "string" ? undefined : one.result);
const TOOL_CALL = { id: "call_1", name: "read" };
const systemPromptOf = (one: CaseRequest) => (typeof one === "string" ? undefined : one.system);

/** Returns the request in the chat completions protocol. */
export function toChatRequest(one: CaseRequest, stream: boolean): AskOptions {
  const system = systemPromptOf(one);
  const before = system === undefined ? [] : [{ role: "system", content: system }];
  const result = toolResultOf(one);
  const call = {
    id: TOOL_CALL.id,
    type: "function",
    function: { name: TOOL_CALL.name, arguments: "{}" },
  };
  const after =
    result === undefined
      ? []
      : [
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "tool", tool_call_id: TOOL_CALL.id, content: result },
        ];
  return { stream, body: { messages: [...before, ...toMessages(one), ...after] } };
}

/** Sends the request in the messages protocol, and returns the client's response. */
export async function sendMessagesRequest(
  url: string,
  one: CaseRequest,
  stream: boolean,
): Promise<ClientAnswer> {
  const result = toolResultOf(one);
  const after =
    result === undefined
      ? []
      : [
          { role: "assistant", content: [{ type: "tool_use", ...TOOL_CALL, input: {} }] },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: TOOL_CALL.id, content: result }],
          },
        ];
  const response = await fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      "x-api-key": "tester",
    },
    body: JSON.stringify({
      model: "up/model",
      max_tokens: 1_000,
      messages: [...toMessages(one), ...after],
      system: systemPromptOf(one),
      stream,
    }),
  });
  const body = await response.text();
  const lines = stream && response.ok ? body.split("\n") : [`data: ${body}`];
  const parts = lines.flatMap((line) => {
    const text = /^data: (.*)$/s.exec(line)?.[1];
    return text === undefined ? [] : [JSON.parse(text)];
  });
  const error = parts.find((part) => part.type === "error")?.error;
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: parts
      .flatMap((part) => [part.delta?.text, ...(part.content ?? []).map((b: any) => b.text)])
      .join(""),
    error,
    body,
  };
}

/**
 * Returns variants of a request with its text in other places. A text that is rejected in a user
 * turn must be rejected in these places too.
 */
export const otherPlacements = (one: CaseRequest): Readonly<Record<string, CaseRequest>> => {
  const text = caseTurns(one).find((turn) => turn !== "") ?? "";
  return {
    "a tool's result": { turns: ["What does it say?"], result: text },
    "a system prompt": { system: text, turns: ["Go on."] },
  };
};
