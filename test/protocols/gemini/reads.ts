// A Gemini request as its server reads it: the other half of the codec, written from the API's documentation, for laws
// that ask whether what was sent means what was said. What stands in the path is read from beside the body.
import type {
  Block,
  ChatRequest,
  Json,
  JsonObject,
  Media,
  Reasoning,
  Tool,
  Turn,
} from "tollgate/plugin";

/** Everything that may stand at the top; what else there is, is left over. */
const TOP = [
  "contents",
  "systemInstruction",
  "tools",
  "toolConfig",
  "generationConfig",
  "serviceTier",
  "~path",
];

export function read(body: any): ChatRequest {
  const config = body.generationConfig ?? {};
  const { functionCallingConfig: calling } = body.toolConfig ?? {};
  const rest: Record<string, Json> = {};
  for (const field in body) if (!TOP.includes(field) && body[field]) rest[field] = body[field];
  return {
    kind: "chat",
    model: body["~path"].model,
    stream: body["~path"].stream,
    instructions: (body.systemInstruction?.parts ?? []).map(blockOf),
    turns: body.contents.flatMap(turnsOf),
    tools: (body.tools ?? []).flatMap(toolsOf),
    ...(calling && { toolChoice: choiceOf(calling) }),
    output: {
      ...(config.maxOutputTokens !== undefined && { maxTokens: config.maxOutputTokens }),
      ...(config.stopSequences && { stop: config.stopSequences }),
      ...(config.responseMimeType === "application/json" && {
        format: config.responseJsonSchema
          ? { type: "schema", schema: config.responseJsonSchema }
          : { type: "json" },
      }),
    },
    sampling: {
      temperature: config.temperature,
      topP: config.topP,
      topK: config.topK,
      presence: config.presencePenalty,
      frequency: config.frequencyPenalty,
      seed: config.seed,
      ...(config.responseLogprobs && { logprobs: config.logprobs ?? 0 }),
    },
    reasoning: thinkingOf(config.thinkingConfig),
    ...(body.serviceTier && { tier: body.serviceTier }),
    state: {},
    rest,
    ext: { gemini: {} },
  };
}

function turnsOf({ role, parts }: { role: string; parts: JsonObject[] }): Turn[] {
  const turns: { role: Turn["role"]; blocks: Block[] }[] = [];
  for (const part of parts) {
    const block = blockOf(part);
    const who = role === "model" ? "assistant" : block.type === "result" ? "tool" : "user";
    const last = turns.at(-1);
    if (last?.role === who && who !== "tool") last.blocks.push(block);
    else turns.push({ role: who, blocks: [block] });
  }
  return turns;
}

function blockOf(part: any): Block {
  // What stands in for a signature has no author.
  const signature = part.thoughtSignature?.startsWith("skip_") ? undefined : part.thoughtSignature;
  const proof = signature && {
    proof: { origin: "gemini", kind: kindOf(part), data: signature },
  };
  if (part.functionCall) {
    const { id, name, args } = part.functionCall;
    return { type: "call", id, name, tool: "function", args: JSON.stringify(args), ...proof };
  }
  if (part.functionResponse) {
    const { id, name, response, parts = [] } = part.functionResponse;
    const text = response.output ?? response.error;
    const blocks: Block[] = text === "" ? [] : [{ type: "text", text }];
    return {
      type: "result",
      callId: id,
      name,
      blocks: [...blocks, ...parts.map(blockOf)],
      isError: "error" in response,
    };
  }
  if (part.inlineData || part.fileData) return mediaOf(part);
  if (part.thought || (part.text === "" && signature))
    return { type: "reasoning", ...(part.text && { summary: [part.text] }), ...proof };
  return { type: "text", text: part.text, ...proof };
}

const kindOf = (part: any): string =>
  part.text === "" ? (part.thought ? "after" : "empty") : "text" in part ? "words" : "part";

function mediaOf({ inlineData, fileData }: any): Block {
  const mime: string = (inlineData ?? fileData).mimeType ?? "image/png";
  const media: Media = inlineData ? { mime, base64: inlineData.data } : { url: fileData.fileUri };
  const kind = /^(image|audio|video)\//.exec(mime)?.[1] as "image" | undefined;
  return { type: kind ?? "document", media };
}

const toolsOf = ({ functionDeclarations = [] }: any): Tool[] =>
  functionDeclarations.map((one: any) => ({
    type: "function",
    name: one.name,
    description: one.description,
    schema: one.parametersJsonSchema ?? { type: "object", properties: {} },
  }));

function choiceOf({ mode, allowedFunctionNames: names }: any): ChatRequest["toolChoice"] {
  if (names) return { names, must: mode === "ANY" };
  return mode === "ANY" ? "required" : mode === "NONE" ? "none" : "auto";
}

function thinkingOf(config: any): Reasoning {
  if (!config) return { mode: "auto" };
  const { thinkingLevel: level, thinkingBudget: budget } = config;
  if (level) return { mode: "effort", effort: level.toLowerCase() };
  if (budget === 0) return { mode: "off" };
  return budget ? { mode: "budget", budget } : { mode: "auto", show: "summary" };
}
