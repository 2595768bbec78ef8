// Runs the turns of a message whose tools the gateway calls. It joins the turns to one message: calls
// of tools of the gateway become `mcp_tool_use` blocks, followed by their results.
import { fail, type Json, type JsonObject } from "tollgate/plugin";
import { isObject } from "../../mcp/json-rpc.ts";
import type { OfferedTool, ToolResult } from "../gateway-tools.ts";
import { addUsage, outputTokens, type ToolLoop } from "../tool-loop.ts";
import { USE_PREFIX, type ToolRequest } from "./tool-request.ts";

/** Sends events to the client. */
export type SendEvents = (events: readonly JsonObject[]) => void | Promise<void>;

interface Block {
  /** The block as the provider sent it. */
  content: JsonObject;
  /** JSON text of the input of a call. */
  input: string;
  /** Index in the joined message. */
  readonly index: number;
}

interface Turn {
  /** By their index in the turn, in the provider's order. */
  readonly blocks: Map<unknown, Block>;
  message: JsonObject;
  hasEnded: boolean;
  error: JsonObject | undefined;
}

export class MessageTurns {
  readonly #loop: ToolLoop;
  readonly #request: ToolRequest;
  readonly #body: JsonObject;
  readonly #send: SendEvents | undefined;
  #tools: ReadonlyMap<string, OfferedTool> = new Map();
  #functions: readonly Json[] = [];
  #messages: Json[] = [];
  readonly #content: JsonObject[] = [];
  #first: JsonObject | undefined;
  #usage: unknown;
  #turn = 0;

  constructor(of: {
    readonly loop: ToolLoop;
    readonly request: ToolRequest;
    readonly body: JsonObject;
    /** Default: the message is not streamed. */
    readonly send: SendEvents | undefined;
  }) {
    this.#loop = of.loop;
    this.#request = of.request;
    this.#body = of.body;
    this.#send = of.send;
    this.#messages = [...of.request.messages];
  }

  /** Returns the fields of the first turn, in which tools replace the servers of the gateway. */
  async expand(): Promise<JsonObject> {
    await this.#listTools();
    const { remoteServers, messages } = this.#request;
    return {
      messages: [...messages],
      tools: [...this.#functions],
      mcp_servers: remoteServers.length > 0 ? [...remoteServers] : undefined,
    } as JsonObject;
  }

  /** Runs all turns. Returns the joined message, whose end has been sent. */
  async run(): Promise<JsonObject> {
    await this.#listTools();
    while (true) {
      const stop = await this.#runTurn();
      if (!stop) continue;
      const { message, reason } = stop;
      const usage = this.#usage as Json;
      const joined = {
        ...message,
        id: this.#first!["id"]!,
        content: [...this.#content],
        stop_reason: reason,
        usage,
      };
      const { stop_sequence = null, container, context_management } = message;
      const delta = {
        stop_reason: reason,
        stop_sequence,
        ...(container !== undefined && { container }),
      };
      const end = {
        type: "message_delta",
        delta,
        usage,
        ...(context_management !== undefined && { context_management }),
      };
      await this.#send?.([end, { type: "message_stop" }]);
      return joined;
    }
  }

  async #listTools(): Promise<void> {
    const { tools } = this.#request;
    const { byServer, byFunction } = await this.#loop.listTools(tools);
    this.#tools = byFunction;
    this.#functions = tools.flatMap((tool) => {
      const offered = byServer.get(tool);
      if (!offered) return [tool as JsonObject];
      const functions = offered.map(toFunction);
      const last = functions.at(-1);
      if (last && tool.cacheControl != null)
        functions[functions.length - 1] = { ...last, cache_control: tool.cacheControl };
      return functions;
    });
  }

  /** Runs one turn. Returns its message with the reason of the end if it is the last one. */
  async #runTurn(): Promise<{ message: JsonObject; reason: Json } | undefined> {
    const turn: Turn = { blocks: new Map(), message: {}, hasEnded: false, error: undefined };
    const onEvent = this.#send && ((data: string) => this.#onEvent(turn, data));
    const { body } = await this.#loop.runTurn(this.#turnBody(), onEvent);
    this.#turn++;
    if (isObject(body)) {
      turn.message = body;
      turn.hasEnded = true;
      const content = (Array.isArray(body["content"]) ? body["content"] : []) as JsonObject[];
      for (const [at, block] of content.entries()) this.#addBlock(turn, at, block);
    }
    if (!turn.hasEnded) return failTurn(turn.error);
    this.#first ??= turn.message;
    this.#usage = addUsage(this.#usage, turn.message["usage"]);
    return this.#finishTurn(turn);
  }

  async #finishTurn({
    blocks,
    message,
  }: Turn): Promise<{ message: JsonObject; reason: Json } | undefined> {
    const content = [...blocks.values()].map((block) => block.content);
    const reason = message["stop_reason"] ?? null;
    const uses = content.filter((block) => block["type"] === "tool_use");
    const calls = uses.flatMap((use) => {
      const tool = this.#tools.get(String(use["name"]));
      return tool ? [{ use, tool }] : [];
    });
    if (reason !== "tool_use") {
      for (const { use } of calls) await this.#sendResult(use, NOT_MADE);
      return { message, reason };
    }
    const requested = calls.map(({ use, tool }) => ({
      tool,
      args: JSON.stringify(use["input"] ?? {}),
    }));
    // The model gets the results in the order in which the client received them.
    const results: JsonObject[] = [];
    await this.#loop.runCalls(requested, (at, result) => {
      const { use } = calls[at]!;
      results.push(toToolResult(use, result));
      return this.#sendResult(use, result);
    });
    if (calls.length === 0 || calls.length < uses.length) return { message, reason };
    this.#messages.push(
      { role: "assistant", content: content.map((block) => this.#toModel(block)) },
      { role: "user", content: results },
    );
    if (!this.#loop.canContinue) return { message, reason: "pause_turn" };
    return this.#remainingTokens() > this.#minTokens()
      ? undefined
      : { message, reason: "max_tokens" };
  }

  #remainingTokens(): number {
    return Number(this.#body["max_tokens"]) - outputTokens(this.#usage);
  }

  /** A turn needs more tokens than its reasoning may use. */
  #minTokens(): number {
    const { thinking } = this.#body;
    const budget = isObject(thinking) ? thinking["budget_tokens"] : undefined;
    return typeof budget === "number" ? budget : 0;
  }

  #turnBody(): JsonObject {
    const { remoteServers } = this.#request;
    const { tool_choice: choice, mcp_servers: _, ...own } = this.#body;
    const chosen = this.#turnChoice(choice);
    return {
      ...own,
      messages: this.#messages,
      tools: [...this.#functions],
      max_tokens: this.#remainingTokens(),
      stream: this.#send !== undefined,
      ...(remoteServers.length > 0 && { mcp_servers: [...remoteServers] }),
      ...(chosen !== undefined && { tool_choice: chosen }),
    };
  }

  /** A choice that forces a call applies to the first turn only. */
  #turnChoice(choice: Json | undefined): Json | undefined {
    if (this.#turn === 0) return choice;
    if (this.#loop.isLastTurn) return { type: "none" };
    if (!isObject(choice) || (choice["type"] !== "any" && choice["type"] !== "tool")) return choice;
    const { disable_parallel_tool_use: isSerial } = choice;
    return { type: "auto", ...(isSerial != null && { disable_parallel_tool_use: isSerial }) };
  }

  async #onEvent(turn: Turn, data: string): Promise<void> {
    const event = JSON.parse(data) as JsonObject;
    const at = event["index"];
    const block = turn.blocks.get(at);
    switch (event["type"]) {
      case "message_start": {
        turn.message = event["message"] as JsonObject;
        if (!this.#first) await this.#send!([event]);
        this.#first ??= turn.message;
        return;
      }
      case "content_block_start": {
        const index = this.#addBlock(turn, at, event["content_block"] as JsonObject);
        return this.#send!([{ ...event, index, content_block: this.#content[index]! }]);
      }
      case "content_block_delta": {
        if (!block) return;
        const delta = event["delta"] as JsonObject;
        if (delta["type"] === "input_json_delta") block.input += String(delta["partial_json"]);
        else block.content = addDelta(block.content, delta);
        return this.#send!([{ ...event, index: block.index }]);
      }
      case "content_block_stop": {
        if (!block) return;
        if (block.input !== "") block.content = { ...block.content, input: parse(block.input) };
        this.#content[block.index] = this.#toClient(block.content);
        return this.#send!([{ ...event, index: block.index }]);
      }
      case "message_delta": {
        const { delta, usage, type: _, ...more } = event;
        const merged = mergeUsage(turn.message["usage"], usage);
        turn.message = { ...turn.message, ...more, ...(delta as JsonObject), usage: merged };
        return;
      }
      case "message_stop":
        turn.hasEnded = true;
        return;
      case "error":
        turn.error = event;
        return;
      default:
        return this.#send!([event]);
    }
  }

  /** Adds a block of a turn. Returns its index in the joined message. */
  #addBlock({ blocks }: Turn, at: unknown, content: JsonObject): number {
    const index = this.#content.push(this.#toClient(content)) - 1;
    blocks.set(at, { content, input: "", index });
    return index;
  }

  /** Returns a block as the client receives it. */
  #toClient(block: JsonObject): JsonObject {
    const tool = block["type"] === "tool_use" ? this.#tools.get(String(block["name"])) : undefined;
    if (!tool) return block;
    return {
      type: "mcp_tool_use",
      id: USE_PREFIX + String(block["id"]),
      name: tool.name,
      server_name: tool.server,
      input: block["input"] ?? {},
    };
  }

  /** Returns a block for the next turn, as it is when the client sends the joined message back. */
  #toModel(block: JsonObject): JsonObject {
    if (!this.#tools.has(String(block["name"])) || block["type"] !== "tool_use") return block;
    const { caller: _, ...own } = block;
    return own;
  }

  async #sendResult(use: JsonObject, { text, error }: ToolResult): Promise<void> {
    const block: JsonObject = {
      type: "mcp_tool_result",
      tool_use_id: USE_PREFIX + String(use["id"]),
      is_error: error !== undefined,
      content: [{ type: "text", text }],
    };
    const index = this.#content.push(block) - 1;
    await this.#send?.([
      { type: "content_block_start", index, content_block: block },
      { type: "content_block_stop", index },
    ]);
  }
}

const NOT_MADE: ToolResult = {
  text: "The call was not made, because the message ended.",
  error: { type: "protocol", code: -32_000, message: "" },
};

const toFunction = (tool: OfferedTool): JsonObject => ({
  name: tool.functionName,
  ...(tool.description !== undefined && { description: tool.description }),
  input_schema: tool.inputSchema,
});

/** A text block may not be empty. */
const toToolResult = ({ id }: JsonObject, { text, error }: ToolResult): JsonObject => ({
  type: "tool_result",
  tool_use_id: id!,
  ...(text !== "" && { content: [{ type: "text", text }] }),
  ...(error && { is_error: true }),
});

function addDelta(block: JsonObject, delta: JsonObject): JsonObject {
  const append = (member: string) => ({
    ...block,
    [member]: String(block[member] ?? "") + String(delta[member]),
  });
  switch (delta["type"]) {
    case "text_delta":
      return append("text");
    case "thinking_delta":
      return append("thinking");
    case "signature_delta":
      return { ...block, signature: delta["signature"]! };
    case "citations_delta": {
      const before = Array.isArray(block["citations"]) ? block["citations"] : [];
      return { ...block, citations: [...before, delta["citation"]!] };
    }
    default:
      return block;
  }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}

/** The usage at the end replaces the numbers of the start that it repeats. */
function mergeUsage(start: Json | undefined, end: Json | undefined): Json {
  const of = (usage: Json | undefined) => (isObject(usage) ? usage : {});
  const given = Object.entries(of(end)).filter(([, value]) => value != null);
  return { ...of(start), ...Object.fromEntries(given) };
}

function failTurn(event: JsonObject | undefined): never {
  const error = event?.["error"];
  const message = isObject(error) ? error["message"] : undefined;
  return fail(
    "upstream",
    typeof message === "string" ? message : "The provider ended the message without a result.",
  );
}
