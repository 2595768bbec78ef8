// Every way through the gateway: a client's protocol, an upstream's, whole or streamed; what is asked there, and what a model
// that is well would answer.
import { eventStream, json, say, type Piece, type ScriptedAnswer } from "tollgate/testing";
import type { UpstreamRequest } from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import { inGemini } from "../../protocols/gemini/speech.ts";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** What stands in every answer that is whole. */
export const WORDS = "Hello, how do you do today?";

const messages = (content: string) => [{ role: "user", content }];
/** Where each is asked, and how a prompt is put there. */
export const FRONTENDS = {
  "chat-completions": {
    path: "/v1/chat/completions",
    body: (prompt: string) => ({ messages: messages(prompt) }),
  },
  messages: {
    path: "/v1/messages",
    body: (prompt: string) => ({ max_tokens: 100, messages: messages(prompt) }),
  },
  responses: { path: "/v1/responses", body: (input: string) => ({ input }) },
  images: { path: "/v1/images/generations", body: (prompt: string) => ({ prompt }) },
} as const;
export type FrontendName = keyof typeof FRONTENDS;

/** Which kind of provider speaks it, and how its models begin. */
export const UPSTREAMS = {
  "chat-completions": { provider: "chat", model: "m" },
  messages: { provider: "messages", model: "m" },
  responses: { provider: "responses", model: "m" },
  gemini: { provider: "google", model: "gemini-m" },
  images: { provider: "chat", model: "draw" },
  "gemini-image": { provider: "google", model: "gemini-m-image-" },
} as const;
export type UpstreamName = keyof typeof UPSTREAMS;

export interface Road {
  readonly from: FrontendName;
  readonly into: UpstreamName;
  readonly stream: boolean;
}

const draws = (name: string): boolean => name.includes("image");

export const ROADS: readonly Road[] = (Object.keys(FRONTENDS) as FrontendName[]).flatMap((from) =>
  (Object.keys(UPSTREAMS) as UpstreamName[])
    .filter((into) => draws(into) === draws(from))
    .flatMap((into) => [false, true].map((stream) => ({ from, into, stream }))),
);

/** An answer as its bytes, before anything went wrong with it. */
export interface GoodAnswer {
  readonly into: UpstreamName;
  readonly stream: boolean;
  readonly type: string;
  /** Events, or one piece that is all of it. */
  readonly pieces: readonly Buffer[];
  readonly bytes: Buffer;
  /** The first piece that says why it ended; what stands before it is not all. */
  readonly finish: number;
}

const FINISH = /"finish_reason":"|"stop_reason":"|"finishReason":"|^event: \S*completed/;

const bytesOf = (piece: Piece): Buffer =>
  Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string));

export function goodAnswer(asked: UpstreamRequest, counted = true): GoodAnswer {
  const { into, stream } = wanted(asked);
  const made = spoken(into, stream, counted, asked);
  const pieces = ([made.body ?? []].flat() as Piece[]).map(bytesOf);
  const finish = pieces.findIndex((piece) => FINISH.test(piece.toString()));
  const type = String(made.headers!["content-type"]);
  return { into, stream, type, pieces, bytes: Buffer.concat(pieces), finish };
}

function wanted(asked: UpstreamRequest): { into: UpstreamName; stream: boolean } {
  const { path } = asked;
  const verb = /models\/(.+):(\w+)$/.exec(path);
  if (verb)
    return {
      into: draws(verb[1]!) ? "gemini-image" : "gemini",
      stream: verb[2] === "streamGenerateContent",
    };
  const into = (Object.keys(FRONTENDS) as FrontendName[]).find((name) =>
    path.endsWith(FRONTENDS[name].path.slice(3)),
  )!;
  return { into, stream: asked.json().stream === true };
}

function spoken(
  into: UpstreamName,
  stream: boolean,
  counted: boolean,
  asked: UpstreamRequest,
): ScriptedAnswer {
  const speech = say(WORDS).usage(counted ? { input: 12, output: 8 } : null);
  if (into === "gemini") return inGemini(speech, { stream, n: asked.n });
  if (into === "images") return pictures(stream, counted);
  if (into === "gemini-image") return drawn(stream, counted);
  return speech.in(into, { stream, model: "m", n: asked.n, body: asked.json() });
}

const COUNTS = { input_tokens: 12, output_tokens: 80, total_tokens: 92 };

function pictures(stream: boolean, counted: boolean): ScriptedAnswer {
  const usage = counted ? { usage: COUNTS } : {};
  if (!stream) return json({ created: 1795000000, data: [{ b64_json: PNG }], ...usage });
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: PNG, created_at: 1795000000, ...more })}\n\n`;
  return eventStream([
    event("image_generation.partial_image", { partial_image_index: 0 }),
    event("image_generation.partial_image", { partial_image_index: 1 }),
    event("image_generation.completed", usage),
  ]);
}

function drawn(stream: boolean, counted: boolean): ScriptedAnswer {
  const usage = counted
    ? { usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 80, totalTokenCount: 92 } }
    : {};
  const candidate = (part: object, more: object = {}) => ({
    candidates: [{ content: { role: "model", parts: [part] }, index: 0, ...more }],
  });
  const picture = { inlineData: { mimeType: "image/png", data: PNG } };
  const whole = { ...candidate(picture, { finishReason: "STOP" }), ...usage };
  if (!stream) return json(whole as JsonObject);
  const event = (data: object) => `data: ${JSON.stringify(data)}\r\n\r\n`;
  return eventStream([event(candidate({ text: "Here:" })), event(whole)]);
}
