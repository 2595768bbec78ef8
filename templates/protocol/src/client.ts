// The client half: encodes requests to providers and decodes their responses.
import {
  fail,
  type Block,
  type CallContext,
  type ClientHalf,
  type ErrorKind,
  type FinishReason,
  type JsonObject,
  type ModelEvent,
  type ModelRequest,
} from "tollgate/plugin";

/** Maximum length of a line. A longer line is an error, so the buffer is bounded. */
const MAX_LINE = 1024 * 1024;
const NEW_LINE = 0x0a;

const KINDS: { readonly [status: number]: ErrorKind } = {
  400: "invalid",
  401: "upstream_auth",
  402: "upstream_quota",
  404: "not_found",
  429: "rate_limited",
  503: "overloaded",
};

const FINISH_REASONS: readonly FinishReason[] = ["stop", "length", "filtered", "refusal"];

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;

function parseObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as JsonObject;
  } catch {
    // Reported below, with a message that contains nothing of the response.
  }
  return fail("upstream", "Acme sent invalid JSON.");
}

/** Decodes one object of a response: text, or the end with the usage. */
function* decodeObject({ say, end, read, written, error }: JsonObject): Generator<ModelEvent> {
  if (error !== undefined) fail("upstream", "Acme reported an error.");
  if (typeof say === "string" && say !== "") yield { type: "delta", index: 0, text: say };
  if (end === undefined) return;
  yield { type: "close", index: 0 };
  yield { type: "usage", usage: { input: count(read), output: count(written) } };
  yield { type: "finish", reason: FINISH_REASONS.find((reason) => reason === end) ?? "other" };
}

function promptOf({ instructions, turns }: ModelRequest<"chat">, of: CallContext): string {
  const blocks: Block[] = [...instructions, ...turns.flatMap((turn) => turn.blocks)];
  if (blocks.length > 1) of.reportLoss("messages", "approximated");
  return blocks
    .map((block) =>
      block.type === "text" ? block.text : fail("unsupported", "Acme supports only text."),
    )
    .join("\n\n");
}

export const client: ClientHalf<"chat"> = {
  paths: { generate: "say" },
  knowsField: (field) => ["model", "prompt", "stream", "max"].includes(field),
  encodeRequest(request, of) {
    if (request.tools.length > 0)
      fail("unsupported", "Acme does not support tools.", { param: "tools" });
    for (const field of Object.keys(request.sampling)) of.reportLoss(field, "dropped");
    const { maxTokens } = request.output;
    return {
      model: of.model,
      prompt: promptOf(request, of),
      ...(of.stream && { stream: true }),
      ...(maxTokens !== undefined && { max: maxTokens }),
    };
  },
  capOutput: (out, tokens) => out.set("max", tokens),
  createDecoder(emit) {
    // A line may arrive in several chunks, and a chunk may end inside a character, so bytes are collected until the line is complete.
    let chunks: Buffer[] = [];
    let length = 0;
    let finished = false;
    emit({ type: "start" });
    emit({ type: "open", index: 0, block: { type: "text" } });
    const line = (bytes: Buffer) => {
      const text = bytes.toString().trim();
      if (text === "" || finished) return;
      for (const event of decodeObject(parseObject(text))) {
        emit(event);
        finished ||= event.type === "finish";
      }
    };
    return {
      push(chunk) {
        let from = 0;
        for (let at = chunk.indexOf(NEW_LINE); at >= 0; at = chunk.indexOf(NEW_LINE, from)) {
          line(Buffer.concat([...chunks, chunk.subarray(from, at)]));
          chunks = [];
          length = 0;
          from = at + 1;
        }
        chunks.push(chunk.subarray(from));
        length += chunk.length - from;
        if (length > MAX_LINE) fail("upstream", "Acme sent a line that is too long.");
      },
      end() {
        if (!finished) fail("upstream", "Acme's response is truncated.");
      },
    };
  },
  decodeResponse(body, emit) {
    const response = parseObject(body.toString());
    if (response["end"] === undefined && response["error"] === undefined)
      fail("upstream", "Acme's response is incomplete.");
    emit({ type: "start" });
    emit({ type: "open", index: 0, block: { type: "text" } });
    for (const event of decodeObject(response)) emit(event);
  },
  decodeFault: (status) => ({
    kind: KINDS[status] ?? "upstream",
    message: `Acme returned status ${status}.`,
  }),
};
