// Responses of a model at Bedrock in the service's own format, written from its documentation
// without our codec: Converse as one body and in frames, and Claude's events in frames. The
// vendor's own codec creates the frames.
import { EventStreamCodec } from "@smithy/eventstream-codec";
import type { Usage } from "tollgate/plugin";
import {
  jsonResponse,
  type ResponsePiece,
  type ScriptedResponse,
  type ModelScript,
} from "tollgate/testing";

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString(),
  (text) => Buffer.from(text),
);

/** One frame in the service's form. */
export function frame(headers: { readonly [name: string]: string }, body: object): Buffer {
  const all = Object.entries({ ...headers, ":content-type": "application/json" });
  return Buffer.from(
    codec.encode({
      headers: Object.fromEntries(all.map(([name, value]) => [name, { type: "string", value }])),
      body: Buffer.from(JSON.stringify(body)),
    }),
  );
}

/** The service adds padding, which no parser may interpret. */
export const event = (type: string, body: object): Buffer =>
  frame({ ":message-type": "event", ":event-type": type }, { ...body, p: "abcdefghij" });

export const exception = (type: string, message: string): Buffer =>
  frame({ ":message-type": "exception", ":exception-type": type }, { message });

const streamed = (body: readonly ResponsePiece[]): ScriptedResponse => ({
  headers: {
    "content-type": "application/vnd.amazon.eventstream",
    "x-amzn-requestid": "req-1",
  },
  body,
  framing: "chunked",
});

const usageOf = (u: Usage) => ({
  inputTokens: u.input ?? 0,
  outputTokens: u.output ?? 0,
  totalTokens: (u.input ?? 0) + (u.output ?? 0) + (u.cache_read ?? 0),
  cacheReadInputTokens: u.cache_read ?? 0,
  cacheWriteInputTokens: (u.cache_write_5m ?? 0) + (u.cache_write_1h ?? 0),
  cacheDetails: [
    { ttl: "5m", inputTokens: u.cache_write_5m ?? 0 },
    { ttl: "1h", inputTokens: u.cache_write_1h ?? 0 },
  ],
});

type Said = ModelScript["output"]["items"][number];

function block(said: Said, at: number): object {
  switch (said.type) {
    case "reasoning":
      return { reasoningContent: { reasoningText: { text: said.text, signature: said.proof } } };
    case "call":
      return {
        toolUse: {
          toolUseId: said.id ?? `tooluse_${at}`,
          name: said.name,
          input: JSON.parse(said.args || "{}"),
        },
      };
    default:
      return { text: said.text };
  }
}

const halves = (text: string): string[] => {
  const at = Math.ceil(text.length / 2);
  return [text.slice(0, at), text.slice(at)].filter((half) => half !== "");
};

function deltas(said: Said): object[] {
  switch (said.type) {
    case "reasoning":
      return [
        ...halves(said.text).map((text) => ({ reasoningContent: { text } })),
        ...(said.proof === undefined ? [] : [{ reasoningContent: { signature: said.proof } }]),
      ];
    case "call":
      return halves(said.args).map((input) => ({ toolUse: { input } }));
    default:
      return halves(said.text).map((text) => ({ text }));
  }
}

const stopOf = ({ output: { finish, items } }: ModelScript): string => {
  if (finish === "length") return "max_tokens";
  if (finish === "filtered") return "guardrail_intervened";
  return items.some(({ type }) => type === "call") ? "tool_use" : "end_turn";
};

export function inConverse(speech: ModelScript): ScriptedResponse {
  const { items, usage } = speech.output;
  const body = JSON.stringify({
    output: { message: { role: "assistant", content: items.map(block) } },
    stopReason: stopOf(speech),
    ...(usage && { usage: usageOf(usage) }),
    metrics: { latencyMs: 12 },
  });
  return {
    ...jsonResponse({}),
    headers: { "content-type": "application/json", "x-amzn-requestid": "req-1" },
    body: usage ? { bytes: body, tells: usage } : body,
    ...(usage && { billedUsage: usage }),
  };
}

export function inFrames(speech: ModelScript): ScriptedResponse {
  const { items, usage, error } = speech.output;
  const pieces: ResponsePiece[] = [event("messageStart", { role: "assistant" })];
  for (const [contentBlockIndex, one] of items.entries()) {
    if (one.type === "call") {
      const { toolUseId, name } = (block(one, contentBlockIndex) as any).toolUse;
      const start = { toolUse: { toolUseId, name } };
      pieces.push(event("contentBlockStart", { contentBlockIndex, start }));
    }
    for (const delta of deltas(one))
      pieces.push(event("contentBlockDelta", { contentBlockIndex, delta }));
    pieces.push(event("contentBlockStop", { contentBlockIndex }));
  }
  if (error !== undefined) pieces.push(exception("throttlingException", error));
  else {
    pieces.push(event("messageStop", { stopReason: stopOf(speech) }));
    const bytes = event("metadata", {
      ...(usage && { usage: usageOf(usage) }),
      metrics: { latencyMs: 12 },
    });
    pieces.push(usage ? { bytes, tells: usage } : bytes);
  }
  return { ...streamed(pieces), ...(usage && { billedUsage: usage }) };
}

/** Claude's own response from InvokeModel: as one body, or its events in frames. */
export function invoked(speech: ModelScript, model: string, stream: boolean): ScriptedResponse {
  const said = speech.toProtocol("messages", { stream, model });
  if (!stream) return said;
  const pieces = [said.body ?? []].flat().map((piece): ResponsePiece => {
    const tells = typeof piece === "object" && "tells" in piece ? piece.tells : undefined;
    const text = String(typeof piece === "object" && "tells" in piece ? piece.bytes : piece);
    // Up to a line feed, because a text may contain other characters that end a line for a pattern.
    const data = /^data: ([^\n]*)/m.exec(text)![1]!;
    if (/"type":"error"/.test(data))
      return exception("throttlingException", JSON.parse(data).error.message);
    const bytes = event("chunk", { bytes: Buffer.from(data).toString("base64") });
    return tells ? { bytes, tells } : bytes;
  });
  return { ...streamed(pieces), ...(said.billedUsage && { billedUsage: said.billedUsage }) };
}
