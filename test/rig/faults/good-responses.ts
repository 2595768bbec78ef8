// Responses of a healthy model in each protocol, as the bytes that a failure then changes.
import {
  eventStreamResponse,
  jsonResponse,
  say,
  type ResponsePiece,
  type ScriptedResponse,
  type UpstreamRequest,
} from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import { inGemini } from "../../protocols/gemini/speech.ts";
import { NUMBER, PNG, wanted, WORDS, type UpstreamName } from "./request-paths.ts";

/** A response as bytes, before the failure. */
export interface GoodAnswer {
  readonly into: UpstreamName;
  readonly stream: boolean;
  readonly type: string;
  /** Events, or one body. */
  readonly pieces: readonly Buffer[];
  readonly bytes: Buffer;
  /** The first chunk with the finish reason. Anything before it is incomplete. */
  readonly finish: number;
}

const FINISH =
  /"finish_reason":"|"stop_reason":"|"finishReason":"|^event: \S*completed|"(speech\.audio|transcript\.text)\.done"/;

const bytesOf = (piece: ResponsePiece): Buffer =>
  Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string));

export function goodAnswer(asked: UpstreamRequest, counted = true): GoodAnswer {
  const { into, stream } = wanted(asked);
  const made = spoken(into, stream, counted, asked);
  const pieces = ([made.body ?? []].flat() as ResponsePiece[]).map(bytesOf);
  const finish = pieces.findIndex((piece) => FINISH.test(piece.toString()));
  const type = String(made.headers!["content-type"]);
  return { into, stream, type, pieces, bytes: Buffer.concat(pieces), finish };
}

const COUNTS = { input_tokens: 12, output_tokens: 80, total_tokens: 92 };
const PROMPT = { prompt_tokens: 12, total_tokens: 12 };
const PIECES = WORDS.match(/\S+\s*/g)!;
const data = (said: object): string => `data: ${JSON.stringify(said)}\n\n`;

function spoken(
  into: UpstreamName,
  stream: boolean,
  counted: boolean,
  asked: UpstreamRequest,
): ScriptedResponse {
  const usage = (of: object) => (counted ? { usage: of } : {});
  switch (into) {
    case "images":
      return pictures(stream, counted, asked.path.endsWith("/edits"));
    case "gemini-image":
      return drawn(stream, counted);
    case "embeddings":
      return jsonResponse({
        object: "list",
        data: [{ object: "embedding", index: 0, embedding: [Number(NUMBER), 0.5] }],
        model: "m",
        ...usage(PROMPT),
      } as JsonObject);
    case "gemini-vectors": {
      const values = [Number(NUMBER), 0.5];
      return asked.path.endsWith("batchEmbedContents")
        ? jsonResponse({ embeddings: [{ values }] })
        : jsonResponse({ embedding: { values } });
    }
    case "rerank":
      return jsonResponse({
        id: "r1",
        results: [
          { index: 1, relevance_score: 0.5 },
          { index: 0, relevance_score: Number(NUMBER) },
        ],
        ...(counted && { meta: { billed_units: { search_units: 1 } } }),
      });
    case "moderations":
      return jsonResponse({
        id: "modr-1",
        model: "m",
        results: [
          { flagged: false, categories: {}, category_scores: { violence: Number(NUMBER) } },
        ],
        ...usage({ ...PROMPT, completion_tokens: 0 }),
      } as JsonObject);
    case "transcriptions":
      return stream
        ? eventStreamResponse([
            ...PIECES.map((delta) => data({ type: "transcript.text.delta", delta })),
            data({ type: "transcript.text.done", text: WORDS, ...usage(HEARD) }),
          ])
        : jsonResponse({ text: WORDS, ...usage(HEARD) } as JsonObject);
    case "speech":
      return spokenAloud(stream, counted);
    case "completions":
      return goneOn(stream, counted);
    default: {
      const speech = say(WORDS).usage(counted ? { input: 12, output: 8 } : null);
      return into === "gemini"
        ? inGemini(speech, { stream, n: asked.number })
        : speech.toProtocol(into, {
            stream,
            model: "m",
            responseNumber: asked.number,
            body: asked.json(),
          });
    }
  }
}

const HEARD = { type: "tokens", ...COUNTS };

/** Its bytes contain no usage, but its events do. */
function spokenAloud(stream: boolean, counted: boolean): ScriptedResponse {
  if (!stream)
    return { headers: { "content-type": "audio/mpeg" }, body: PIECES, framing: "chunked" };
  return eventStreamResponse([
    ...PIECES.map((piece) =>
      data({ type: "speech.audio.delta", audio: Buffer.from(piece).toString("base64") }),
    ),
    data({ type: "speech.audio.done", ...(counted && { usage: COUNTS }) }),
  ]);
}

function goneOn(stream: boolean, counted: boolean): ScriptedResponse {
  const frame = { id: "cmpl-1", object: "text_completion", created: 1, model: "m" };
  const usage = { prompt_tokens: 12, completion_tokens: 8, total_tokens: 20 };
  const choices = (text: string, finish_reason: string | null) => ({
    ...frame,
    choices: [{ text, index: 0, logprobs: null, finish_reason }],
  });
  if (!stream)
    return jsonResponse({
      ...choices(WORDS, "stop"),
      ...(counted && { usage }),
    } as unknown as JsonObject);
  return eventStreamResponse([
    ...PIECES.map((text) => data(choices(text, null))),
    data(choices("", "stop")),
    ...(counted ? [data({ ...frame, choices: [], usage })] : []),
    "data: [DONE]\n\n",
  ]);
}

function pictures(stream: boolean, counted: boolean, changed: boolean): ScriptedResponse {
  const usage = counted ? { usage: COUNTS } : {};
  if (!stream) return jsonResponse({ created: 1795000000, data: [{ b64_json: PNG }], ...usage });
  const what = changed ? "image_edit" : "image_generation";
  const event = (step: string, more: object) => {
    const type = `${what}.${step}`;
    return `event: ${type}\n${data({ type, b64_json: PNG, created_at: 1795000000, ...more })}`;
  };
  return eventStreamResponse([
    event("partial_image", { partial_image_index: 0 }),
    event("partial_image", { partial_image_index: 1 }),
    event("completed", usage),
  ]);
}

function drawn(stream: boolean, counted: boolean): ScriptedResponse {
  const usage = counted
    ? { usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 80, totalTokenCount: 92 } }
    : {};
  const candidate = (part: object, more: object = {}) => ({
    candidates: [{ content: { role: "model", parts: [part] }, index: 0, ...more }],
  });
  const picture = { inlineData: { mimeType: "image/png", data: PNG } };
  const whole = { ...candidate(picture, { finishReason: "STOP" }), ...usage };
  if (!stream) return jsonResponse(whole as JsonObject);
  const event = (said: object) => `data: ${JSON.stringify(said)}\r\n\r\n`;
  return eventStreamResponse([event(candidate({ text: "Here:" })), event(whole)]);
}
