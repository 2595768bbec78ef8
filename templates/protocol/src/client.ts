// The half that faces providers: writes their requests, reads their answers.
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

/** Longer than any line that Acme sends: what has no end is not collected. */
const LONGEST = 1024 * 1024;
const NEW_LINE = 0x0a;

const KINDS: { readonly [status: number]: ErrorKind } = {
  400: "invalid",
  401: "upstream_auth",
  402: "upstream_quota",
  404: "not_found",
  429: "rate_limited",
  503: "overloaded",
};

const ENDS: readonly FinishReason[] = ["stop", "length", "filtered", "refusal"];

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;

function objectIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as JsonObject;
  } catch {
    // Told below, in words that hold nothing of the answer.
  }
  return fail("upstream", "Acme sent what is no JSON.");
}

/** One object as Acme sends it: words, or the end with its counts. */
function* meaning({ say, end, read, written, error }: JsonObject): Generator<ModelEvent> {
  if (error !== undefined) fail("upstream", "Acme broke off with an error.");
  if (typeof say === "string" && say !== "") yield { type: "delta", index: 0, text: say };
  if (end === undefined) return;
  yield { type: "close", index: 0 };
  yield { type: "usage", usage: { input: count(read), output: count(written) } };
  yield { type: "finish", reason: ENDS.find((reason) => reason === end) ?? "other" };
}

function promptOf({ instructions, turns }: ModelRequest<"chat">, of: CallContext): string {
  const blocks: Block[] = [...instructions, ...turns.flatMap((turn) => turn.blocks)];
  if (blocks.length > 1) of.reportLoss("messages", "approximated");
  return blocks
    .map((block) => (block.type === "text" ? block.text : fail("unsupported", "Acme reads text.")))
    .join("\n\n");
}

export const client: ClientHalf<"chat"> = {
  paths: { generate: "say" },
  knowsField: (field) => ["model", "prompt", "stream", "max"].includes(field),
  encodeRequest(request, of) {
    if (request.tools.length > 0) fail("unsupported", "Acme knows no tools.", { param: "tools" });
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
    // A line may come in many pieces, and a piece may end within a character: bytes are kept until the line is whole.
    let pieces: Buffer[] = [];
    let length = 0;
    let over = false;
    emit({ type: "start" });
    emit({ type: "open", index: 0, block: { type: "text" } });
    const line = (bytes: Buffer) => {
      const text = bytes.toString().trim();
      if (text === "" || over) return;
      for (const event of meaning(objectIn(text))) {
        emit(event);
        over ||= event.type === "finish";
      }
    };
    return {
      push(chunk) {
        let from = 0;
        for (let at = chunk.indexOf(NEW_LINE); at >= 0; at = chunk.indexOf(NEW_LINE, from)) {
          line(Buffer.concat([...pieces, chunk.subarray(from, at)]));
          pieces = [];
          length = 0;
          from = at + 1;
        }
        pieces.push(chunk.subarray(from));
        length += chunk.length - from;
        if (length > LONGEST) fail("upstream", "Acme sent a line without an end.");
      },
      end() {
        if (!over) fail("upstream", "Acme broke off before its end.");
      },
    };
  },
  decodeResponse(body, emit) {
    const answer = objectIn(body.toString());
    if (answer["end"] === undefined && answer["error"] === undefined)
      fail("upstream", "Acme's answer has no end.");
    emit({ type: "start" });
    emit({ type: "open", index: 0, block: { type: "text" } });
    for (const event of meaning(answer)) emit(event);
  },
  decodeFault: (status) => ({ kind: KINDS[status] ?? "upstream", message: `Acme said ${status}.` }),
};
