// Output of a model, independent of any API format: one script that a fake upstream sends in every
// protocol. The formats are written by hand from their documentation. They do not use the codecs,
// because a codec must not be checked with its own output.
//
//     const weather = think("Need the weather.").call("get_weather", { city: "Oslo" }).usage({ input: 20, output: 7 });
//     const up = await startUpstream(scriptedModel(weather));
import type { FinishReason } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";
import { jsonResponse, type ScriptedResponse } from "./scripted-response.ts";
import { toChatCompletions } from "./speaks/chat-completions.ts";
import { toMessagesResponse } from "./speaks/messages.ts";
import { toResponses } from "./speaks/responses.ts";
import type { FormatOptions, ScriptOutput, ScriptItem } from "./script-pieces.ts";
import type { UpstreamRequest, ScriptedRoutes } from "./upstream.ts";

/** An immutable script. Every method returns a new script. */
export interface ModelScript {
  readonly output: ScriptOutput;
  say(text: string): ModelScript;
  /** Adds reasoning. `proof` is its signature or encrypted content. */
  think(text: string, proof?: string): ModelScript;
  refuse(text: string): ModelScript;
  /** Adds a tool call. String arguments are sent unchanged, even if they are not valid JSON. */
  call(name: string, args?: Json, id?: string): ModelScript;
  /** Adds a call of a freeform tool, whose input is not JSON. */
  custom(name: string, input: string, id?: string): ModelScript;
  /**
   * Sets the usage. Default: 10 input tokens, and one output token for each piece. `null`: no usage
   * is reported.
   */
  usage(usage: Usage | null): ModelScript;
  /** Sets the finish reason. Default: tool_calls if there is a tool call, else stop. */
  finish(reason: FinishReason, sequence?: string): ModelScript;
  /** Sets the model name in the response. Default: the requested model. */
  model(name: string): ModelScript;
  /** Ends the stream with the protocol's own error event. */
  fail(message: string): ModelScript;
  toProtocol(protocol: ScriptProtocol, manner?: Partial<FormatOptions>): ScriptedResponse;
  /**
   * Returns the response in the protocol that the path belongs to, as a stream or complete as the
   * body requests.
   */
  toResponse(request: UpstreamRequest): ScriptedResponse;
}

const FORMATS = {
  "chat-completions": toChatCompletions,
  messages: toMessagesResponse,
  responses: toResponses,
} as const;
/** A protocol that the fake upstream supports. */
export type ScriptProtocol = keyof typeof FORMATS;

/** Paths of each protocol, after any prefix. */
const PROTOCOL_PATHS: readonly [RegExp, ScriptProtocol][] = [
  [/\/chat\/completions$/, "chat-completions"],
  [/\/messages$/, "messages"],
  [/\/responses$/, "responses"],
];

/** Returns the protocol of a path. Undefined if no protocol uses it. */
export function protocolAtPath(path: string): ScriptProtocol | undefined {
  return PROTOCOL_PATHS.find(([pattern]) => pattern.test(path))?.[1];
}

function createScript(words: ScriptOutput): ModelScript {
  const more = (item: ScriptItem) => createScript({ ...words, items: [...words.items, item] });
  return {
    output: words,
    say: (text) => more({ type: "text", text }),
    think: (text, proof) => more({ type: "reasoning", text, proof }),
    refuse: (text) => more({ type: "refusal", text }),
    call: (name, args = {}, id) =>
      more({ type: "call", id, name, args: toArguments(args), custom: false }),
    custom: (name, input, id) => more({ type: "call", id, name, args: input, custom: true }),
    usage: (usage) => createScript({ ...words, usage: usage ?? undefined }),
    finish: (reason, sequence) => createScript({ ...words, finish: reason, sequence }),
    model: (model) => createScript({ ...words, model }),
    fail: (error) => createScript({ ...words, error }),
    toProtocol: (protocol, manner = {}) => {
      const {
        stream = false,
        model = words.model ?? "model",
        responseNumber = 1,
        body = {},
      } = manner;
      const answer = FORMATS[protocol](words, {
        stream,
        model: words.model ?? model,
        responseNumber,
        body,
      });
      return words.usage === undefined ? answer : { billedUsage: words.usage, ...answer };
    },
    toResponse(request) {
      const protocol = protocolAtPath(request.path);
      if (!protocol) throw new Error(`No protocol is served at ${request.path}.`);
      const body = request.json();
      return this.toProtocol(protocol, {
        stream: body.stream === true,
        model: body.model,
        responseNumber: request.number,
        body,
      });
    },
  };
}

const toArguments = (args: Json) => (typeof args === "string" ? args : JSON.stringify(args));

const emptyScript = createScript({
  items: [],
  usage: { input: 10, output: 5 },
  finish: undefined,
  sequence: undefined,
  model: undefined,
  error: undefined,
});

/** Returns a script that starts with a text. */
export const say = (text: string): ModelScript => emptyScript.say(text);
/** Returns a script that starts with reasoning, signed with `proof` if it is given. */
export const think = (text: string, proof?: string): ModelScript => emptyScript.think(text, proof);
/** Returns a script that starts with a refusal. */
export const refuse = (text: string): ModelScript => emptyScript.refuse(text);
/** Returns a script that starts with a tool call. Without an ID, each protocol generates one. */
export const call = (name: string, args?: Json, id?: string): ModelScript =>
  emptyScript.call(name, args, id);

/**
 * Returns the routes of an upstream that sends this script in every protocol, counts tokens, and
 * lists its models.
 */
export function scriptedModel(
  what: ModelScript | ((request: UpstreamRequest) => ModelScript | Promise<ModelScript>),
  models: readonly string[] = ["model"],
): ScriptedRoutes {
  const generate = async (request: UpstreamRequest) =>
    (typeof what === "function" ? await what(request) : what).toResponse(request);
  const list = models.map((id) => ({
    id,
    object: "model",
    type: "model",
    display_name: id,
    owned_by: "test",
    created: 1795000000,
    created_at: "2026-11-21T00:00:00Z",
  }));
  return {
    "POST /v1/chat/completions": generate,
    "POST /v1/messages": generate,
    "POST /v1/responses": generate,
    "POST /v1/messages/count_tokens": jsonResponse({ input_tokens: 42 }),
    "POST /v1/responses/input_tokens": jsonResponse({
      object: "response.input_tokens",
      input_tokens: 42,
    }),
    "GET /v1/models": jsonResponse({
      object: "list",
      data: list,
      has_more: false,
      first_id: models[0] ?? null,
      last_id: models.at(-1) ?? null,
    }),
  };
}

/**
 * Returns the tool results in the last turn of a request, in any protocol. Empty if the last turn
 * contains none.
 */
export function toolResults(request: UpstreamRequest): string[] {
  const body = request.json();
  const text = (content: unknown): string =>
    typeof content === "string"
      ? content
      : ((content ?? []) as { text?: string }[]).map((part) => part.text ?? "").join("");
  if (Array.isArray(body.input)) {
    const given = (item: any) => item.type?.endsWith("_call_output") === true;
    const from = body.input.findLastIndex((item: any) => !given(item)) + 1;
    return body.input.slice(from).map((item: any) => text(item.output));
  }
  const turns: any[] = body.messages ?? [];
  const last = turns.at(-1);
  if (last?.role === "tool") {
    const from = turns.findLastIndex((turn) => turn.role !== "tool") + 1;
    return turns.slice(from).map((turn) => text(turn.content));
  }
  if (last?.role !== "user" || !Array.isArray(last.content)) return [];
  return last.content
    .filter((block: any) => block.type === "tool_result")
    .map((block: any) => text(block.content));
}
