// What a model says, apart from any wire: one script, spoken by a fake upstream in every protocol. The wires are written
// by hand from their documentation, not with the codecs, which must not judge themselves.
//
//     const weather = think("Need the weather.").call("get_weather", { city: "Oslo" }).usage({ input: 20, output: 7 });
//     const up = await upstream(speaking(weather));
import type { FinishReason } from "../model/event.ts";
import type { Usage } from "../model/usage.ts";
import type { Json } from "../model/values.ts";
import { json, type ScriptedAnswer } from "./answer.ts";
import { inChat } from "./speaks/chat-completions.ts";
import { inMessages } from "./speaks/messages.ts";
import { inResponses } from "./speaks/responses.ts";
import type { Manner, SpokenAnswer, SpokenItem } from "./spoken.ts";
import type { UpstreamRequest, ScriptedRoutes } from "./upstream.ts";

/** Immutable: every word gives a new speech. */
export interface Speech {
  readonly words: SpokenAnswer;
  say(text: string): Speech;
  /** `proof`: what a signature or encrypted content holds. */
  think(text: string, proof?: string): Speech;
  refuse(text: string): Speech;
  /** A string is passed on as it is, right JSON or not. */
  call(name: string, args?: Json, id?: string): Speech;
  /** A freeform tool: its input is no JSON. */
  custom(name: string, input: string, id?: string): Speech;
  /** Unless told: 10 in, one out for each piece. `null`: none is reported. */
  usage(usage: Usage | null): Speech;
  /** Unless told: tool_calls when there is a call, else stop. */
  finish(reason: FinishReason, sequence?: string): Speech;
  /** The name that the answer gives its model; unless told, the one that was asked for. */
  model(name: string): Speech;
  /** Ends the stream in the protocol's own error event. */
  fail(message: string): Speech;
  in(protocol: SpokenProtocol, manner?: Partial<Manner>): ScriptedAnswer;
  /** In the protocol that the path belongs to, as stream or whole as the body asks. */
  to(asked: UpstreamRequest): ScriptedAnswer;
}

const WIRES = {
  "chat-completions": inChat,
  messages: inMessages,
  responses: inResponses,
} as const;
/** A protocol in which the fake upstream can speak. */
export type SpokenProtocol = keyof typeof WIRES;

/** Where each protocol is asked, whatever stands before it. */
const PATHS: readonly [RegExp, SpokenProtocol][] = [
  [/\/chat\/completions$/, "chat-completions"],
  [/\/messages$/, "messages"],
  [/\/responses$/, "responses"],
];

/** Which protocol is asked at this path; undefined where none is. */
export function spokenAt(path: string): SpokenProtocol | undefined {
  return PATHS.find(([pattern]) => pattern.test(path))?.[1];
}

function speech(words: SpokenAnswer): Speech {
  const more = (said: SpokenItem) => speech({ ...words, said: [...words.said, said] });
  return {
    words,
    say: (text) => more({ type: "text", text }),
    think: (text, proof) => more({ type: "reasoning", text, proof }),
    refuse: (text) => more({ type: "refusal", text }),
    call: (name, args = {}, id) =>
      more({ type: "call", id, name, args: argsOf(args), custom: false }),
    custom: (name, input, id) => more({ type: "call", id, name, args: input, custom: true }),
    usage: (usage) => speech({ ...words, usage: usage ?? undefined }),
    finish: (reason, sequence) => speech({ ...words, finish: reason, sequence }),
    model: (model) => speech({ ...words, model }),
    fail: (error) => speech({ ...words, error }),
    in: (protocol, manner = {}) => {
      const { stream = false, model = words.model ?? "model", n = 1, body = {} } = manner;
      const answer = WIRES[protocol](words, { stream, model: words.model ?? model, n, body });
      return words.usage === undefined ? answer : { bill: words.usage, ...answer };
    },
    to(asked) {
      const protocol = spokenAt(asked.path);
      if (!protocol) throw new Error(`No protocol is spoken at ${asked.path}.`);
      const body = asked.json();
      return this.in(protocol, {
        stream: body.stream === true,
        model: body.model,
        n: asked.n,
        body,
      });
    },
  };
}

const argsOf = (args: Json) => (typeof args === "string" ? args : JSON.stringify(args));

const silence = speech({
  said: [],
  usage: { input: 10, output: 5 },
  finish: undefined,
  sequence: undefined,
  model: undefined,
  error: undefined,
});

/** A speech that begins with a text. */
export const say = (text: string): Speech => silence.say(text);
/** A speech that begins with a thought, signed by `proof` where one is given. */
export const think = (text: string, proof?: string): Speech => silence.think(text, proof);
/** A speech that begins with a refusal. */
export const refuse = (text: string): Speech => silence.refuse(text);
/** A speech that begins with a call of a tool. Without an id each protocol makes one. */
export const call = (name: string, args?: Json, id?: string): Speech =>
  silence.call(name, args, id);

/** An upstream that says this in every protocol, counts tokens and lists its models. */
export function speaking(
  what: Speech | ((asked: UpstreamRequest) => Speech | Promise<Speech>),
  models: readonly string[] = ["model"],
): ScriptedRoutes {
  const generate = async (asked: UpstreamRequest) =>
    (typeof what === "function" ? await what(asked) : what).to(asked);
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
    "POST /v1/messages/count_tokens": json({ input_tokens: 42 }),
    "POST /v1/responses/input_tokens": json({ object: "response.input_tokens", input_tokens: 42 }),
    "GET /v1/models": json({
      object: "list",
      data: list,
      has_more: false,
      first_id: models[0] ?? null,
      last_id: models.at(-1) ?? null,
    }),
  };
}

/** What the last turn of a request gives back to the model's tools, in whatever protocol; empty when it is no tool turn. */
export function toolResults(asked: UpstreamRequest): string[] {
  const body = asked.json();
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
