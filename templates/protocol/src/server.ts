// The half that faces clients: reads their requests, writes their answers.
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

const textOf = ({ blocks }: ModelResponse): string =>
  blocks.map((block) => (block.type === "text" ? block.text : "")).join("");

const countsOf = ({ input, output }: Usage): JsonObject => ({
  read: input ?? 0,
  written: output ?? 0,
});

function requestOf(body: Body): ModelRequest<"chat"> {
  const { model, prompt, stream, max, ...rest } = body;
  if (typeof prompt !== "string") return fail("invalid", "prompt is a text.", { param: "prompt" });
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
    // What this codec does not know goes on as it is.
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
  decodeRequest: requestOf,
  contentType: ({ stream }) => (stream ? "application/x-ndjson" : "application/json"),
  createEncoder(write) {
    let usage: Usage = {};
    const line = (value: JsonObject) => write(`${JSON.stringify(value)}\n`);
    return {
      writeEvent(event) {
        if (event.type === "delta") line({ say: event.text });
        // The first may be a guess. The last one, just before the finish, is what is billed.
        if (event.type === "usage") usage = event.usage;
        if (event.type === "finish") line({ end: event.reason, ...countsOf(usage) });
      },
      writeFault: ({ kind, message }) => line({ error: { kind, message } }),
    };
  },
  encodeResponse: (answer) => ({
    say: textOf(answer),
    end: answer.finish.reason,
    ...countsOf(answer.usage),
  }),
  encodeFault: ({ kind, message }) => ({
    status: ERRORS[kind][0],
    body: { error: { kind, message } },
  }),
  ping: "\n",
};
