// The server half: decodes requests of clients and encodes responses.
import {
  ERRORS,
  fail,
  type Body,
  type JsonObject,
  type ModelResponse,
  type ModelRequest,
  type ServerHalf,
  type Usage,
} from "tollgate/plugin";

const responseText = ({ blocks }: ModelResponse): string =>
  blocks.map((block) => (block.type === "text" ? block.text : "")).join("");

const encodeUsage = ({ input, output }: Usage): JsonObject => ({
  read: input ?? 0,
  written: output ?? 0,
});

function decodeRequest(body: Body): ModelRequest<"chat"> {
  const { model, prompt, stream, max, ...rest } = body;
  if (typeof prompt !== "string")
    return fail("invalid", "prompt must be a string.", { param: "prompt" });
  return {
    operation: "chat",
    model: typeof model === "string" ? model : "",
    stream: stream === true,
    instructions: [],
    turns: [{ role: "user", blocks: [{ type: "text", text: prompt }] }],
    tools: [],
    output: { maxTokens: typeof max === "number" ? max : undefined },
    sampling: {},
    reasoning: { mode: "auto" },
    state: {},
    // Unknown fields are forwarded.
    rest: rest as JsonObject,
    ext: {},
  };
}

export const server: ServerHalf<"chat"> = {
  schema: {
    type: "object",
    required: ["model", "prompt"],
    properties: {
      model: { type: "string" },
      prompt: { type: "string" },
      stream: { type: "boolean" },
      max: { type: "integer", minimum: 1 },
    },
  },
  analyze: ({ max }) => ({ features: [], maxOutput: typeof max === "number" ? max : undefined }),
  decodeRequest,
  contentType: ({ stream }) => (stream ? "application/x-ndjson" : "application/json"),
  createEncoder(write) {
    let usage: Usage = {};
    const line = (value: JsonObject) => write(`${JSON.stringify(value)}\n`);
    return {
      writeEvent(event) {
        if (event.type === "delta") line({ say: event.text });
        // Early reports may be estimates. The last report, just before the finish event, is billed.
        if (event.type === "usage") usage = event.usage;
        if (event.type === "finish") line({ end: event.reason, ...encodeUsage(usage) });
      },
      writeFault: ({ kind, message }) => line({ error: { kind, message } }),
    };
  },
  encodeResponse: (response) => ({
    say: responseText(response),
    end: response.finish.reason,
    ...encodeUsage(response.usage),
  }),
  encodeFault: ({ kind, message }) => ({
    status: ERRORS[kind][0],
    body: { error: { kind, message } },
  }),
  ping: "\n",
};
