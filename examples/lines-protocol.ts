// examples/lines-protocol.ts
import {
  chatOperation,
  ERRORS,
  fail,
  type Body,
  type JsonObject,
  type ModelResponse,
  type ModelRequest,
  type Protocol,
  type Usage,
} from "tollgate/plugin";

const responseText = ({ blocks }: ModelResponse): string =>
  blocks.map((block) => (block.type === "text" ? block.text : "")).join("");

function decodeRequest(body: Body): ModelRequest<"chat"> {
  const { model, prompt, stream, max, ...rest } = body;
  if (typeof prompt !== "string")
    return fail("invalid", "prompt must be a string.", { param: "prompt" });
  return {
    operation: "chat",
    model: model as string,
    stream: stream === true,
    instructions: [],
    turns: [{ role: "user", blocks: [{ type: "text", text: prompt }] }],
    tools: [],
    output: { maxTokens: max as number | undefined },
    sampling: {},
    reasoning: { mode: "auto" },
    state: {},
    rest: rest as JsonObject,
    ext: {},
  };
}

/** Accepts a prompt, returns lines of JSON. It has only a server half: clients use it, providers do not. */
export const lines = (): Protocol<"chat"> => ({
  id: "lines",
  operationSpec: chatOperation,
  server: {
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
          if (event.type === "delta") line({ text: event.text });
          // Early reports may be estimates. The last report, just before the finish event, is
          // billed.
          if (event.type === "usage") usage = event.usage;
          if (event.type === "finish") line({ done: event.reason, usage: { ...usage } });
        },
        writeFault: ({ kind, message }) => line({ error: { kind, message } }),
      };
    },
    encodeResponse: (response) => ({
      text: responseText(response),
      usage: { ...response.usage },
      done: response.finish.reason,
    }),
    encodeFault: ({ kind, message }) => ({
      status: ERRORS[kind][0],
      body: { error: { kind, message } },
    }),
    ping: "\n",
  },
});
