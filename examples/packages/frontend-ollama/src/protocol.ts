// The formats of `/api/chat` and `/api/generate`: requests are decoded into the common form, and its
// events are encoded as lines of JSON.
import {
  chatOperation,
  ERRORS,
  fail,
  type Block,
  type Body,
  type Encoder,
  type Json,
  type JsonObject,
  type ModelRequest,
  type ModelResponse,
  type Protocol,
  type RequestFacts,
  type ResponseContext,
  type Turn,
  type Usage,
} from "tollgate/plugin";

/** Parts of a message that Ollama's clients read. */
interface Message {
  text: string;
  thinking?: string;
  calls?: readonly Json[];
}
/** Difference between `/api/chat` and `/api/generate`: where a request has its text, and a response its message. */
interface Format {
  id: string;
  schema: object;
  turns(body: Body): readonly Turn[];
  /** Top-level fields that `turns` reads. */
  fields: readonly string[];
  message(of: Message): JsonObject;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const asList = (value: unknown): readonly Json[] => (Array.isArray(value) ? value : []);
const asText = (value: unknown): string => (typeof value === "string" ? value : "");
const asNumber = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/** Ollama's options in common terms. Options that only Ollama has are kept in `ext`. */
const SAMPLING = {
  temperature: "temperature",
  top_p: "topP",
  top_k: "topK",
  seed: "seed",
  presence_penalty: "presence",
  frequency_penalty: "frequency",
} as const;
const COMMON_OPTIONS: readonly string[] = [...Object.keys(SAMPLING), "num_predict", "stop"];
const COMMON_FIELDS: readonly string[] = ["model", "stream", "options", "tools", "format", "think"];

const MIME_BY_START = {
  iVBOR: "image/png",
  "/9j/": "image/jpeg",
  R0lG: "image/gif",
  UklG: "image/webp",
};
const imageBlock = (base64: string): Block => ({
  type: "image",
  media: {
    mime: Object.entries(MIME_BY_START).find(([start]) => base64.startsWith(start))?.[1],
    base64,
  },
});
const contentBlocks = (text: unknown, images: unknown): readonly Block[] => [
  ...(asText(text) === "" ? [] : [{ type: "text" as const, text: asText(text) }]),
  ...asList(images).map((image) => imageBlock(asText(image))),
];

/**
 * Ollama's calls have no IDs: a result belongs to the oldest open call, or to the call of its tool.
 */
function chatTurns({ messages }: Body): readonly Turn[] {
  const open: { id: string; name: string }[] = [];
  let calls = 0;
  return asList(messages).map((message): Turn => {
    if (!isObject(message))
      return fail("invalid", "A message must be an object.", { param: "messages" });
    const role = asText(message["role"]) as Turn["role"];
    const blocks = contentBlocks(message["content"], message["images"]);
    if (role === "tool") {
      const name = asText(message["tool_name"] ?? message["name"]);
      const at = open.findIndex((call) => call.name === name);
      const [call] = open.splice(Math.max(at, 0), 1);
      if (!call) return fail("invalid", "A tool result has no call.", { param: "messages" });
      return {
        role,
        blocks: [{ type: "result", callId: call.id, name: call.name, blocks, isError: false }],
      };
    }
    const made = asList(message["tool_calls"]).map((each): Block => {
      const call = isObject(each) && isObject(each["function"]) ? each["function"] : {};
      const [id, name] = [`call_${++calls}`, asText(call["name"])];
      open.push({ id, name });
      return {
        type: "call",
        id,
        name,
        tool: "function",
        args: JSON.stringify(call["arguments"] ?? {}),
      };
    });
    const thinking = asText(message["thinking"]);
    return {
      role,
      blocks: [
        ...(thinking === "" ? [] : [{ type: "reasoning" as const, text: thinking }]),
        ...blocks,
        ...made,
      ],
    };
  });
}

const generateTurns = ({ system, prompt, images }: Body): readonly Turn[] => [
  ...(asText(system) === ""
    ? []
    : [{ role: "system" as const, blocks: contentBlocks(system, undefined) }]),
  { role: "user", blocks: contentBlocks(prompt, images) },
];

function decodeRequest(body: Body, { id, turns, fields }: Format): ModelRequest<"chat"> {
  const options = isObject(body["options"]) ? body["options"] : {};
  const { format, think } = body;
  const own = Object.entries(options).filter(([name]) => !COMMON_OPTIONS.includes(name));
  const rest = Object.entries(body).filter(
    ([name]) => ![...COMMON_FIELDS, ...fields].includes(name),
  );
  const maxTokens = asNumber(options["num_predict"]);
  return {
    operation: "chat",
    model: asText(body["model"]),
    stream: body["stream"] !== false,
    instructions: [],
    turns: turns(body),
    tools: asList(body["tools"]).flatMap((tool) => {
      const declared = isObject(tool) && isObject(tool["function"]) ? tool["function"] : undefined;
      return declared
        ? [
            {
              type: "function" as const,
              name: asText(declared["name"]),
              description: asText(declared["description"]),
              schema: isObject(declared["parameters"]) ? declared["parameters"] : {},
            },
          ]
        : [];
    }),
    output: {
      // In Ollama, a negative number means no maximum.
      maxTokens: maxTokens !== undefined && maxTokens > 0 ? maxTokens : undefined,
      stop: [options["stop"] ?? []].flat().map(asText),
      format: isObject(format)
        ? { type: "schema", schema: format }
        : format === "json"
          ? { type: "json" }
          : undefined,
    },
    sampling: Object.fromEntries(
      Object.entries(SAMPLING).map(([name, common]) => [common, asNumber(options[name])]),
    ),
    reasoning:
      typeof think === "string"
        ? { mode: "effort", effort: think, show: "full" }
        : { mode: think === false ? "off" : "auto" },
    state: {},
    rest: Object.fromEntries(rest) as JsonObject,
    ext: own.length > 0 ? { [id]: Object.fromEntries(own) as JsonObject } : {},
  };
}

function analyze(body: Body): RequestFacts {
  const options = isObject(body["options"]) ? body["options"] : {};
  const images = [
    ...asList(body["images"]),
    ...asList(body["messages"]).flatMap((one) => (isObject(one) ? asList(one["images"]) : [])),
  ];
  const max = asNumber(options["num_predict"]);
  return {
    features: [
      ...(asList(body["tools"]).length > 0 ? (["tools"] as const) : []),
      ...(images.length > 0 ? (["vision"] as const) : []),
      ...(body["format"] === "json" ? (["json"] as const) : []),
      ...(isObject(body["format"]) ? (["json_schema"] as const) : []),
    ],
    maxOutput: max !== undefined && max > 0 ? max : undefined,
    ...(images.length > 0 && {
      media: {
        count: images.length,
        bytes: images.reduce((sum: number, one) => sum + asText(one).length, 0),
      },
    }),
  };
}

const headOf = ({ model, created }: ResponseContext) => ({
  model,
  created_at: new Date(created * 1_000).toISOString(),
});

/** The last line of a response, or all of one that is not streamed. */
const lastLine = (
  message: JsonObject,
  reason: string,
  usage: Usage,
  to: ResponseContext,
): JsonObject => ({
  ...headOf(to),
  ...message,
  done: true,
  done_reason: reason === "length" ? "length" : "stop",
  prompt_eval_count: (usage.input ?? 0) + (usage.cache_read ?? 0),
  eval_count: (usage.output ?? 0) + (usage.reasoning ?? 0),
});

const callOf = (name: string, args: string): Json => ({
  function: { name, arguments: args === "" ? {} : JSON.parse(args) },
});

function createEncoder(
  write: (piece: string) => void,
  to: ResponseContext,
  { message }: Format,
): Encoder {
  let usage: Usage = {};
  const open = new Map<number, { type: string; name: string; args: string }>();
  const line = (value: JsonObject) => write(`${JSON.stringify(value)}\n`);
  const part = (of: Message) => line({ ...headOf(to), ...message(of), done: false });
  return {
    writeEvent(event) {
      // Early reports may be estimates. The last report, just before the finish event, is billed.
      if (event.type === "usage") usage = event.usage;
      else if (event.type === "open")
        open.set(event.index, {
          type: event.block.type,
          name: event.block.type === "call" ? event.block.name : "",
          args: "",
        });
      else if (event.type === "delta") {
        const block = open.get(event.index);
        if (block?.type === "call") block.args += event.text;
        else if (block?.type === "reasoning") part({ text: "", thinking: event.text });
        else part({ text: event.text });
      } else if (event.type === "close") {
        const block = open.get(event.index);
        if (block?.type === "call") part({ text: "", calls: [callOf(block.name, block.args)] });
      } else if (event.type === "finish")
        line(lastLine(message({ text: "" }), event.reason, usage, to));
    },
    writeFault: (fault) => line({ error: fault.message }),
  };
}

function encodeResponse(
  { blocks, usage, finish }: ModelResponse,
  to: ResponseContext,
  { message }: Format,
) {
  const texts = (type: "text" | "reasoning") =>
    blocks.map((block) => (block.type === type ? (block.text ?? "") : "")).join("");
  const calls = blocks.flatMap((block) =>
    block.type === "call" ? [callOf(block.name, block.args)] : [],
  );
  const thinking = texts("reasoning");
  return lastLine(
    message({
      text: texts("text"),
      ...(thinking !== "" && { thinking }),
      ...(calls.length > 0 && { calls }),
    }),
    finish.reason,
    usage,
    to,
  );
}

const ollama = (format: Format): Protocol<"chat"> => ({
  id: format.id,
  operationSpec: chatOperation,
  server: {
    schema: format.schema,
    analyze,
    decodeRequest: (body) => decodeRequest(body, format),
    contentType: ({ stream }) => (stream ? "application/x-ndjson" : "application/json"),
    createEncoder: (write, to) => createEncoder(write, to, format),
    encodeResponse: (response, to) => encodeResponse(response, to, format),
    encodeFault: ({ kind, message }, { status }) => ({
      status: status ?? ERRORS[kind][0],
      body: { error: message },
    }),
    // Ollama's clients parse every line, so nothing can be written while the provider is silent.
    ping: "",
  },
});

const schemaOf = (required: string, properties: object) => ({
  type: "object",
  required: ["model", required],
  properties: {
    model: { type: "string", minLength: 1 },
    stream: { type: "boolean" },
    options: { type: "object" },
    ...properties,
  },
});

/** `POST /api/chat`. Like `lines`, it has only a server half: clients use it, providers do not. */
export const ollamaChat = (): Protocol<"chat"> =>
  ollama({
    id: "ollama-chat",
    schema: schemaOf("messages", {
      messages: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          required: ["role"],
          properties: { role: { enum: ["system", "user", "assistant", "tool"] } },
        },
      },
      tools: { type: "array" },
    }),
    fields: ["messages"],
    turns: chatTurns,
    message: ({ text, thinking, calls }) => ({
      message: {
        role: "assistant",
        content: text,
        ...(thinking !== undefined && { thinking }),
        ...(calls && { tool_calls: calls }),
      },
    }),
  });

/** `POST /api/generate`: one prompt instead of messages. */
export const ollamaGenerate = (): Protocol<"chat"> =>
  ollama({
    id: "ollama-prompt",
    schema: schemaOf("prompt", {
      prompt: { type: "string", minLength: 1 },
      system: { type: "string" },
    }),
    fields: ["prompt", "system", "images"],
    turns: generateTurns,
    message: ({ text, thinking }) => ({
      response: text,
      ...(thinking !== undefined && { thinking }),
    }),
  });
