// Responses of a fake Gemini. Written from the API's documentation, not with the codec.
import {
  eventStreamResponse,
  jsonResponse,
  protocolAtPath,
  type ScriptedResponse,
  type UpstreamRequest,
  type ResponsePiece,
  type ScriptedRoutes,
  type ModelScript,
} from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import { countsOf, endOf } from "./writes.ts";

export interface Manner {
  readonly stream: boolean;
  readonly model?: string;
  readonly n?: number;
}

/**
 * A signature is on the first call after the reasoning that it signs, or else on the text. At the
 * end, it is on a part without text.
 */
function partsOf({ output: { items } }: ModelScript): JsonObject[] {
  const parts: JsonObject[] = [];
  let signature: string | undefined;
  const add = (part: JsonObject) => {
    parts.push(signature === undefined ? part : { ...part, thoughtSignature: signature });
    signature = undefined;
  };
  for (const one of items)
    switch (one.type) {
      case "reasoning":
        if (one.text !== "") parts.push({ text: one.text, thought: true });
        signature = one.proof ?? signature;
        break;
      case "call": {
        const { id, name, args } = one;
        add({ functionCall: { ...(id && { id }), name, args: JSON.parse(args || "{}") } });
        break;
      }
      default:
        if (items.some(({ type }) => type === "call")) parts.push({ text: one.text });
        else add({ text: one.text });
    }
  if (signature !== undefined) add({ text: "" });
  return parts;
}

export function inGemini(
  speech: ModelScript,
  { stream, model = "gemini-x", n = 1 }: Manner,
): ScriptedResponse {
  const { output } = speech;
  const parts = partsOf(speech);
  const head = { modelVersion: model, responseId: `answer-${n}` };
  const usage = output.usage && { usageMetadata: countsOf(output.usage) };
  const refused = output.items.some(({ type }) => type === "refusal");
  const finishReason = endOf({ reason: output.finish ?? (refused ? "refusal" : "stop") });
  const candidate = (some: readonly JsonObject[], more: JsonObject = {}) => ({
    candidates: [{ content: { role: "model", parts: some }, index: 0, ...more }],
  });
  const bill = output.usage === undefined ? {} : { billedUsage: output.usage };
  if (!stream) {
    const body = { ...candidate(parts, { finishReason }), ...usage, ...head };
    const tells = output.usage && { bytes: JSON.stringify(body), tells: output.usage };
    return { ...jsonResponse(body as never), ...(tells && { body: tells }), ...bill };
  }
  const event = (data: object) => `data: ${JSON.stringify(data)}\r\n\r\n`;
  const pieces: ResponsePiece[] = parts.flatMap(spread).map((part) =>
    event({
      ...candidate([part]),
      ...head,
      usageMetadata: countsOf({ input: output.usage?.input }),
    }),
  );
  if (output.error !== undefined) {
    const error = { code: 503, message: output.error, status: "UNAVAILABLE" };
    return { ...eventStreamResponse([...pieces, event({ error })]), ...bill };
  }
  const last = event({ ...candidate([{ text: "" }], { finishReason }), ...usage, ...head });
  return {
    ...eventStreamResponse([...pieces, output.usage ? { bytes: last, tells: output.usage } : last]),
    ...bill,
  };
}

/** Word by word. The last one is signed. */
function spread(part: JsonObject): JsonObject[] {
  const { text, thoughtSignature, ...marks } = part;
  if (typeof text !== "string" || text === "") return [part];
  const all = text.match(/\s*\S+\s*$|\s*\S+|\s+/g) ?? [text];
  return all.map((text, i) => ({
    text,
    ...marks,
    ...(i === all.length - 1 && thoughtSignature !== undefined && { thoughtSignature }),
  }));
}

/** A fake Gemini API with this response, token counts, and one model. */
export function speakingGemini(
  what: ModelScript | ((asked: UpstreamRequest) => ModelScript),
): ScriptedRoutes {
  return {
    "POST /v1beta/models/*": (asked) => {
      const [, model, verb] = /models\/(.+):(\w+)$/.exec(asked.path) ?? [];
      if (verb === "countTokens") return jsonResponse({ totalTokens: 42 });
      const stream = verb === "streamGenerateContent";
      if (stream && asked.query.get("alt") !== "sse") throw new Error("A stream without alt=sse.");
      const speech = typeof what === "function" ? what(asked) : what;
      return inGemini(speech, { stream, model: model!, n: asked.number });
    },
    "GET /v1beta/models": jsonResponse({
      models: [
        {
          name: "models/gemini-3.5-flash",
          displayName: "Gemini 3.5 Flash",
          inputTokenLimit: 1048576,
          outputTokenLimit: 65536,
          supportedGenerationMethods: ["generateContent", "countTokens"],
          thinking: true,
        },
      ],
    }),
  };
}

const ASKED = /models\/(.+):(?:g|streamG)enerateContent$/;

/** In the protocol of a path: a fake upstream for all of them. Undefined for other paths. */
export function inAny(speech: ModelScript, asked: UpstreamRequest): ScriptedResponse | undefined {
  if (protocolAtPath(asked.path)) return speech.toResponse(asked);
  const [, model] = ASKED.exec(asked.path) ?? [];
  if (model === undefined) return undefined;
  return inGemini(speech, { stream: asked.path.includes(":stream"), model, n: asked.number });
}
