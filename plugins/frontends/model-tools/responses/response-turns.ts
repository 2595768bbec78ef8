// Runs the turns of a response whose tools the gateway calls. It joins the turns to one response:
// function calls for tools of the gateway become `mcp_call` items, with their results.
import { randomUUID } from "node:crypto";
import { fail, type Body, type Json, type JsonObject, type RequestHead } from "tollgate/plugin";
import { isObject } from "../../mcp/json-rpc.ts";
import {
  functionNameOf,
  protocolError,
  type OfferedTool,
  type ToolResult,
} from "../gateway-tools.ts";
import { addUsage, outputTokens, type RequestedCall, type ToolLoop } from "../tool-loop.ts";
import { MAX_PENDING_ARGUMENTS, type Approvals, type PendingCall } from "./approvals.ts";
import {
  CALL_PREFIX,
  callOutput,
  LIST_PREFIX,
  type ResponsesServer,
  type ToolRequest,
} from "./tool-request.ts";

/** Sends an event to the client. */
export type SendEvent = (event: JsonObject) => void | Promise<void>;

/** An item of a turn in the joined response. */
interface Placed {
  /** Index in the joined response. Undefined for a call that waits for approval. */
  readonly index: number | undefined;
  readonly tool: OfferedTool | undefined;
}

interface Turn {
  /** Items by their index in the turn. */
  readonly placed: Map<number, Placed>;
  /** Items that were complete. */
  readonly done: Set<number>;
  response: JsonObject | undefined;
  error: JsonObject | undefined;
}

/** Smallest value of `max_output_tokens` that providers accept. */
const MIN_OUTPUT_TOKENS = 16;
const STARTS = new Set(["response.created", "response.queued", "response.in_progress"]);
const ENDS = new Set(["response.completed", "response.incomplete", "response.failed"]);
/** Items that the client answers. */
const CLIENT_CALLS =
  /^(?:function_call|custom_tool_call|computer_call|local_shell_call|shell_call|apply_patch_call)$/;

export class ResponseTurns {
  readonly #loop: ToolLoop;
  readonly #request: ToolRequest;
  readonly #body: JsonObject;
  readonly #approvals: Approvals;
  readonly #send: SendEvent | undefined;
  #tools: ReadonlyMap<string, OfferedTool> = new Map();
  readonly #needsApproval = new Set<OfferedTool>();
  readonly #output: JsonObject[] = [];
  /** Items that precede the first turn. */
  #intro: number[] = [];
  #functions: readonly JsonObject[] = [];
  #input: Json[] = [];
  #usage: unknown;
  #sequence = 0;
  #turn = 0;
  #hasSentIntro = false;
  #first: JsonObject | undefined;

  constructor(of: {
    readonly loop: ToolLoop;
    readonly request: ToolRequest;
    readonly body: JsonObject;
    readonly approvals: Approvals;
    /** Default: the response is not streamed. */
    readonly send: SendEvent | undefined;
  }) {
    this.#loop = of.loop;
    this.#request = of.request;
    this.#body = of.body;
    this.#approvals = of.approvals;
    this.#send = of.send;
  }

  /** Runs all turns. Returns the joined response, whose event has been sent. */
  async run(): Promise<JsonObject> {
    await this.#listTools();
    await this.#makeInput();
    while (true) {
      const { response, isFinal } = await this.#runTurn();
      if (!isFinal) continue;
      const joined = this.#join(response);
      const status = String(joined["status"]);
      const type = ENDS.has(`response.${status}`) ? `response.${status}` : "response.completed";
      await this.#emit(type, { response: joined });
      return joined;
    }
  }

  /** Returns the fields of the first turn that differ from the client's. */
  async expand(): Promise<Body> {
    await this.#listTools();
    await this.#makeInput();
    const { input, tools } = this.#turnBody();
    return { input, tools, tool_choice: this.#turnChoice() };
  }

  /** Sends the event of a failure, after other events have been sent. */
  async fail(code: string, message: string): Promise<void> {
    const response = this.#join({ ...this.#first, status: "failed", error: { code, message } });
    await this.#emit("response.failed", { response });
  }

  async #listTools(): Promise<void> {
    const { servers, tools, listed } = this.#request;
    const { byServer, byFunction } = await this.#loop.listTools(tools);
    this.#tools = byFunction;
    for (const server of servers) {
      const offered = byServer.get(server)!;
      for (const tool of offered) if (server.needsApproval(tool)) this.#needsApproval.add(tool);
      if (!listed.has(server.name)) this.#intro.push(this.#place(toListItem(server.name, offered)));
    }
    this.#functions = tools.flatMap(
      (tool) => byServer.get(tool)?.map(toFunction) ?? [tool as JsonObject],
    );
  }

  /** Makes the approved calls, and puts their results into the input. */
  async #makeInput(): Promise<void> {
    const pending = this.#request.input.flatMap((part) =>
      "approved" in part ? [part.approved] : [],
    );
    const results = await this.#makeApproved(pending);
    for (const part of this.#request.input) {
      if ("item" in part) this.#input.push(part.item);
      else {
        const { callId } = part.approved;
        this.#input.push(callOutput(callId, results.get(part.approved)!.text));
      }
    }
    // A text becomes an item when other items follow.
    if (this.#input.length === 1 && typeof this.#input[0] === "string")
      this.#input = [{ type: "message", role: "user", content: this.#input[0] }];
    if (this.#input.length === 1 && this.#input[0] === undefined) this.#input = [];
  }

  async #makeApproved(
    pending: readonly PendingCall[],
  ): Promise<ReadonlyMap<PendingCall, ToolResult>> {
    const results = new Map<PendingCall, ToolResult>();
    const known: PendingCall[] = [];
    const calls: RequestedCall[] = [];
    for (const call of pending) {
      const tool = this.#findTool(call.server, call.name);
      if (tool) {
        known.push(call);
        calls.push({ tool, args: call.args });
      } else results.set(call, protocolError(-32_602, `Unknown tool: ${call.name.slice(0, 128)}`));
    }
    await this.#loop.runCalls(calls, (at, result) => void results.set(known[at]!, result));
    for (const call of pending) {
      const item = {
        ...toCallItem(call, call.args),
        approval_request_id: call.id,
        ...endOf(results.get(call)!),
      };
      this.#intro.push(this.#place(item));
    }
    return results;
  }

  async #runTurn(): Promise<{ response: JsonObject; isFinal: boolean }> {
    const turn: Turn = {
      placed: new Map(),
      done: new Set(),
      response: undefined,
      error: undefined,
    };
    const onEvent = this.#send && ((data: string) => this.#onEvent(turn, data));
    const { body } = await this.#loop.runTurn(this.#turnBody(), onEvent);
    this.#turn++;
    const response = turn.response ?? (isObject(body) ? body : undefined);
    if (!response) return failTurn(turn.error);
    this.#first ??= response;
    await this.#sendIntro();
    const items = (Array.isArray(response["output"]) ? response["output"] : []) as JsonObject[];
    for (const [at, item] of items.entries())
      if (!turn.done.has(at)) await this.#onDone(turn, at, item);
    this.#usage = addUsage(this.#usage, response["usage"]);
    const isFinal = await this.#finishTurn(turn, response, items);
    return isFinal || !this.#loop.canContinue
      ? { response, isFinal: true }
      : this.#withinOutputLimit(response);
  }

  /** Makes the calls of a turn. Returns whether the turn is the last one. */
  async #finishTurn(
    turn: Turn,
    response: JsonObject,
    items: readonly JsonObject[],
  ): Promise<boolean> {
    const calls: { at: number; index: number; tool: OfferedTool }[] = [];
    const waiting: { item: JsonObject; tool: OfferedTool }[] = [];
    const clientCalls: string[] = [];
    for (const [at, item] of items.entries()) {
      const { index, tool } = turn.placed.get(at)!;
      if (tool && index !== undefined) calls.push({ at, index, tool });
      else if (tool) waiting.push({ item, tool });
      else if (CLIENT_CALLS.test(String(item["type"]))) clientCalls.push(String(item["call_id"]));
    }
    const isFinal = waiting.length > 0 || clientCalls.length > 0;
    // The requests come last, because each contains the other calls of the turn.
    for (const [n, { item, tool }] of waiting.entries()) {
      const next = waiting.length > 1 ? waiting[(n + 1) % waiting.length]! : undefined;
      await this.#requestApproval(tool, item, {
        hasOtherCalls: calls.length > 0,
        next: next && {
          callId: String(next.item["call_id"]),
          server: next.tool.server,
          name: next.tool.name,
        },
        clientCalls,
      });
    }
    if (response["status"] !== "completed") {
      for (const { index } of calls) await this.#endCall(index, { status: "incomplete" });
      return true;
    }
    const requested = calls.map(({ at, tool }) => ({
      tool,
      args: String(items[at]!["arguments"]),
    }));
    const results = await this.#loop.runCalls(requested, (n, result) =>
      this.#endCall(calls[n]!.index, endOf(result)),
    );
    const isStored = this.#body["store"] !== false && this.#loop.x.privacy === "off";
    this.#input.push(...items.flatMap((item) => toInput(item, isStored)));
    for (const [n, { at }] of calls.entries())
      this.#input.push(callOutput(String(items[at]!["call_id"]), results[n]!.text));
    return isFinal || calls.length === 0;
  }

  /** Ends the response if the turns have produced the maximum number of tokens. */
  #withinOutputLimit(response: JsonObject): { response: JsonObject; isFinal: boolean } {
    if (this.#remainingTokens() >= MIN_OUTPUT_TOKENS) return { response, isFinal: false };
    const incomplete = { reason: "max_output_tokens" };
    return {
      response: { ...response, status: "incomplete", incomplete_details: incomplete },
      isFinal: true,
    };
  }

  #remainingTokens(): number {
    const max = this.#body["max_output_tokens"];
    return typeof max === "number" ? max - outputTokens(this.#usage) : Infinity;
  }

  #turnBody(): JsonObject {
    const remaining = this.#remainingTokens();
    const choice = this.#turnChoice();
    const { tool_choice: _, background: __, ...own } = this.#body;
    return {
      ...own,
      input: this.#input,
      tools: [...this.#functions],
      stream: this.#send !== undefined,
      ...(choice !== undefined && { tool_choice: choice }),
      ...(remaining !== Infinity && { max_output_tokens: remaining }),
    };
  }

  /** A choice that forces a call applies to the first turn only. */
  #turnChoice(): Json | undefined {
    if (this.#turn > 0 && this.#loop.isLastTurn) return "none";
    const choice = this.#body["tool_choice"];
    if (isObject(choice)) {
      if (choice["type"] === "allowed_tools") {
        const tools = (Array.isArray(choice["tools"]) ? choice["tools"] : []) as JsonObject[];
        const mode = this.#turn > 0 && { mode: "auto" };
        return { ...choice, ...mode, tools: this.#allowedFunctions(tools) };
      }
      if (this.#turn > 0) return "auto";
      const server = this.#chosenServer(choice);
      if (!server) return choice;
      const functions = this.#functionChoices(server, choice["name"]);
      if (functions.length === 1) return functions[0];
      return { type: "allowed_tools", mode: "required", tools: functions };
    }
    return this.#turn > 0 && choice === "required" ? "auto" : choice;
  }

  /** Replaces choices of servers by their functions, each choice once. */
  #allowedFunctions(choices: readonly JsonObject[]): JsonObject[] {
    const known = new Set<string>();
    return choices.flatMap((choice) => {
      const server = this.#chosenServer(choice);
      if (!server) return [choice];
      const id = JSON.stringify([server.name, choice["name"] ?? null]);
      if (known.has(id)) return [];
      known.add(id);
      return this.#functionChoices(server, choice["name"]);
    });
  }

  #chosenServer({ type, server_label: label }: JsonObject): ResponsesServer | undefined {
    return type === "mcp" ? this.#request.servers.find(({ name }) => name === label) : undefined;
  }

  /** Returns the function of a tool, or of all tools of the server. */
  #functionChoices({ name: server }: ResponsesServer, name: Json | undefined): JsonObject[] {
    const chosen =
      name == null
        ? [...this.#tools.values()].filter((tool) => tool.server === server)
        : [this.#findTool(server, name)];
    return chosen.flatMap((tool) => (tool ? [{ type: "function", name: tool.functionName }] : []));
  }

  #findTool(server: string, name: Json): OfferedTool | undefined {
    const tool = this.#tools.get(functionNameOf(server, String(name)));
    return tool?.server === server && tool.name === name ? tool : undefined;
  }

  async #onEvent(turn: Turn, data: string): Promise<void> {
    if (data === "[DONE]") return;
    const event = JSON.parse(data) as JsonObject;
    const type = String(event["type"]);
    if (STARTS.has(type)) {
      if (this.#hasSentIntro) return;
      this.#first = event["response"] as JsonObject;
      return this.#emit(type, { response: this.#present(this.#first, []) });
    }
    if (ENDS.has(type)) return void (turn.response = event["response"] as JsonObject);
    if (type === "error") return void (turn.error = event);
    await this.#sendIntro();
    const { output_index: at, item, sequence_number: _, ...own } = event;
    if (typeof at !== "number") return this.#emit(type, own);
    if (type === "response.output_item.added") return this.#onAdded(turn, at, item as JsonObject);
    if (type === "response.output_item.done") return this.#onDone(turn, at, item as JsonObject);
    const placed = turn.placed.get(at);
    // The arguments of a call that waits for approval are in its request.
    if (!placed || placed.index === undefined) return undefined;
    const { index, tool } = placed;
    if (!tool) return this.#emit(type, { ...own, output_index: index });
    const part = /^response\.function_call_arguments\.(delta|done)$/.exec(type)?.[1];
    if (part === undefined) return undefined;
    const member = part === "delta" ? "delta" : "arguments";
    return this.#emit(`response.mcp_call_arguments.${part}`, {
      ...this.#at(index),
      [member]: event[member],
    });
  }

  async #onAdded(turn: Turn, at: number, item: JsonObject): Promise<void> {
    const tool =
      item["type"] === "function_call" ? this.#tools.get(String(item["name"])) : undefined;
    if (tool && this.#needsApproval.has(tool))
      return void turn.placed.set(at, { index: undefined, tool });
    const own = tool ? toCallItem(tool, "") : item;
    const index = this.#place(own);
    turn.placed.set(at, { index, tool });
    await this.#emit("response.output_item.added", { output_index: index, item: own });
    if (tool) await this.#emit("response.mcp_call.in_progress", this.#at(index));
  }

  async #onDone(turn: Turn, at: number, item: JsonObject): Promise<void> {
    if (!turn.placed.has(at)) await this.#onAdded(turn, at, item);
    turn.done.add(at);
    const { index, tool } = turn.placed.get(at)!;
    if (index === undefined) return undefined;
    if (tool)
      return void (this.#output[index] = { ...this.#output[index], arguments: item["arguments"] });
    this.#output[index] = item;
    await this.#emit("response.output_item.done", { output_index: index, item });
  }

  async #requestApproval(
    tool: OfferedTool,
    item: JsonObject,
    turn: Pick<PendingCall, "hasOtherCalls" | "next" | "clientCalls">,
  ): Promise<void> {
    const args = String(item["arguments"]);
    if (args.length > MAX_PENDING_ARGUMENTS)
      fail("upstream", "The arguments of a call that needs approval are too large.");
    const { server, name } = tool;
    const call = { callId: String(item["call_id"]), server, name, args, ...turn };
    const request: JsonObject = {
      id: this.#approvals.createId(this.#loop.x, call),
      type: "mcp_approval_request",
      server_label: server,
      name,
      arguments: args,
    };
    const index = this.#place(request);
    for (const type of ["added", "done"])
      await this.#emit(`response.output_item.${type}`, { output_index: index, item: request });
  }

  async #endCall(index: number, end: JsonObject): Promise<void> {
    const item = { ...this.#output[index], ...end };
    this.#output[index] = item;
    if (end["status"] !== "incomplete")
      await this.#emit(`response.mcp_call.${String(end["status"])}`, this.#at(index));
    await this.#emit("response.output_item.done", { output_index: index, item });
  }

  /** Sends the items that precede the first turn. */
  async #sendIntro(): Promise<void> {
    if (this.#hasSentIntro) return;
    this.#hasSentIntro = true;
    for (const index of this.#intro) {
      const item = this.#output[index]!;
      const isList = item["type"] === "mcp_list_tools";
      const open = isList
        ? { ...item, tools: [] }
        : { ...item, status: "in_progress", output: null, error: null };
      await this.#emit("response.output_item.added", { output_index: index, item: open });
      const kind = isList ? "mcp_list_tools" : "mcp_call";
      const end = isList ? "completed" : String(item["status"]);
      for (const state of ["in_progress", end])
        await this.#emit(`response.${kind}.${state}`, this.#at(index));
      await this.#emit("response.output_item.done", { output_index: index, item });
    }
  }

  #place(item: JsonObject): number {
    return this.#output.push(item) - 1;
  }

  #at(index: number): JsonObject {
    return { output_index: index, item_id: this.#output[index]!["id"]! };
  }

  async #emit(type: string, event: JsonObject): Promise<void> {
    await this.#send?.({ ...event, type, sequence_number: this.#sequence++ });
  }

  /** Returns the response of a turn with the items and usage of all turns. */
  #join(response: JsonObject): JsonObject {
    const usage = this.#usage === undefined ? response["usage"] : (this.#usage as Json);
    return { ...this.#present(response, this.#output), ...(usage !== undefined && { usage }) };
  }

  /** Returns a response with the client's own fields. Credentials of servers are omitted. */
  #present(response: JsonObject, output: readonly JsonObject[]): JsonObject {
    const { tools, tool_choice: choice, max_output_tokens: max } = this.#body;
    const previous = this.#body["previous_response_id"] ?? null;
    const visible = (Array.isArray(tools) ? (tools as JsonObject[]) : []).map(
      ({ authorization: _, headers: __, ...tool }) => tool,
    );
    return {
      ...response,
      id: responseIdOf(this.#loop.x),
      output: [...output],
      tools: visible,
      tool_choice: choice ?? "auto",
      ...("max_output_tokens" in response && { max_output_tokens: max ?? null }),
      ...("previous_response_id" in response && { previous_response_id: previous }),
    };
  }
}

/** Prefix of responses that consist of several turns. The rest is the ID of the request. */
export const RESPONSE_PREFIX = "resp_gw_";

const responseIdOf = ({ id }: RequestHead): string => RESPONSE_PREFIX + id;

const toFunction = (tool: OfferedTool): JsonObject => ({
  type: "function",
  name: tool.functionName,
  ...(tool.description !== undefined && { description: tool.description }),
  parameters: tool.inputSchema,
  strict: false,
});

const newId = (prefix: string): string => prefix + randomUUID().replaceAll("-", "");

const toListItem = (label: string, tools: readonly OfferedTool[]): JsonObject => ({
  id: newId(LIST_PREFIX),
  type: "mcp_list_tools",
  server_label: label,
  tools: tools.map(({ name, description, inputSchema, annotations }) => ({
    name,
    description: description ?? null,
    input_schema: inputSchema,
    annotations,
  })),
  error: null,
});

const toCallItem = (
  { server, name }: { readonly server: string; readonly name: string },
  args: string,
): JsonObject => ({
  id: newId(CALL_PREFIX),
  type: "mcp_call",
  status: "in_progress",
  server_label: server,
  name,
  arguments: args,
  approval_request_id: null,
  output: null,
  error: null,
});

/** Returns the members of a call that has ended. */
function endOf({ text, error }: ToolResult): JsonObject {
  if (!error) return { status: "completed", output: text, error: null };
  const shown: JsonObject =
    error.type === "tool"
      ? { type: "mcp_tool_execution_error", content: error.content }
      : { type: "mcp_protocol_error", code: error.code, message: error.message };
  return { status: "failed", output: null, error: shown };
}

/** Returns an item of a turn as input of the next one. */
function toInput(item: JsonObject, isStored: boolean): readonly JsonObject[] {
  if (isStored) return [item];
  const { id: _, ...own } = item;
  // Without storage, a provider knows reasoning only by its encrypted content.
  if (item["type"] === "reasoning") return item["encrypted_content"] == null ? [] : [item];
  return item["type"] === "function_call" ? [own] : [item];
}

function failTurn(event: JsonObject | undefined): never {
  const { message, error } = event ?? {};
  const text = isObject(error) ? error["message"] : message;
  return fail(
    "upstream",
    typeof text === "string" ? text : "The provider ended the response without a result.",
  );
}
