// Limits of one request whose tools the gateway runs, and the calls of its turns.
import {
  fail,
  type CallRecord,
  type Context,
  type HeadersIn,
  type JsonObject,
  type RequestHead,
} from "tollgate/plugin";
import { isObject } from "../mcp/json-rpc.ts";
import {
  isServer,
  protocolError,
  type GatewayTools,
  type OfferedTool,
  type RequestedServer,
  type ToolResult,
} from "./gateway-tools.ts";
import type { ModelToolOptions } from "./options.ts";

const SECOND_MS = 1_000;
const KIB = 1_024;
/** Largest number of servers of one request. The tools of each one are listed. */
const MAX_SERVERS = 64;
/** Largest number of calls of one turn that run at the same time. */
const MAX_PARALLEL = 8;
/** Code for errors of the gateway in results of tools. */
const LIMIT_CODE = -32_000;

export interface LoopServices {
  readonly ctx: Pick<Context, "sendSubrequest">;
  readonly tools: GatewayTools;
  readonly options: ModelToolOptions;
}

/** A call that the model requested. */
export interface RequestedCall {
  readonly tool: OfferedTool;
  /** JSON text of the arguments. */
  readonly args: string;
}

/** The tools of all servers of a request. */
export interface ToolLists<S> {
  readonly byServer: ReadonlyMap<JsonObject | S, readonly OfferedTool[]>;
  /** By the name that the model sees. */
  readonly byFunction: ReadonlyMap<string, OfferedTool>;
}

export class ToolLoop {
  readonly x: RequestHead;
  readonly #of: LoopServices;
  readonly #canceled = new AbortController();
  readonly #deadline: AbortSignal;
  readonly #maxCalls: number;
  /** Aborts when the client disconnects, the stream is closed, or the time is over. */
  readonly signal: AbortSignal;
  #turns = 0;
  #calls = 0;
  #bytes = 0;

  constructor(of: LoopServices, x: RequestHead, maxCalls = Infinity) {
    this.#of = of;
    this.x = x;
    this.#maxCalls = Math.min(of.options.max_calls, maxCalls);
    this.#deadline = AbortSignal.timeout(of.options.timeout_s * SECOND_MS);
    this.signal = AbortSignal.any([x.signal, this.#canceled.signal, this.#deadline]);
  }

  cancel(): void {
    this.#canceled.abort();
  }

  get tools(): GatewayTools {
    return this.#of.tools;
  }

  /** Whether the next turn is the last one. The model may then call no tools. */
  get isLastTurn(): boolean {
    return this.#turns + 1 >= this.#of.options.max_turns || this.#calls >= this.#maxCalls;
  }

  /** Whether another turn may follow. */
  get canContinue(): boolean {
    return this.#turns < this.#of.options.max_turns;
  }

  /** Lists the tools of the servers in `tools`. Fails if two tools have the same name. */
  async listTools<S extends RequestedServer>(
    tools: readonly (JsonObject | S)[],
  ): Promise<ToolLists<S>> {
    const servers = tools.filter((tool) => isServer(tool));
    if (servers.length > MAX_SERVERS)
      fail("invalid", `The request names more than ${MAX_SERVERS} MCP servers of this gateway.`, {
        param: servers[MAX_SERVERS]!.param,
      });
    const lists = await Promise.all(
      servers.map((server) => this.tools.list(this.x, server, this.signal)),
    );
    const byFunction = new Map<string, OfferedTool>();
    for (const tool of lists.flat()) {
      if (byFunction.has(tool.functionName)) failSameName(tool.functionName, "an MCP server");
      byFunction.set(tool.functionName, tool);
    }
    for (const tool of tools)
      if (!isServer(tool) && byFunction.has(String(tool["name"])))
        failSameName(String(tool["name"]), "the client's tool");
    return { byServer: new Map(servers.map((server, at) => [server, lists[at]!])), byFunction };
  }

  /** Sends a turn to the model, at the path of the client's request. */
  async runTurn(
    body: JsonObject,
    onEvent: ((data: string) => void | Promise<void>) | undefined,
  ): Promise<{ readonly body: unknown; readonly calls: readonly CallRecord[] }> {
    this.#turns++;
    const { path, headers } = this.x;
    const request = { path, body, headers: turnHeaders(headers) };
    try {
      return await this.#of.ctx.sendSubrequest(request, {
        parentRequest: this.x,
        signal: this.signal,
        onEvent,
      });
    } catch (problem) {
      return this.#failIfLate(problem);
    }
  }

  /** Calls tools, and returns their results in the same order. `onResult` is called for each. */
  async runCalls(
    calls: readonly RequestedCall[],
    onResult: (at: number, result: ToolResult) => void | Promise<void>,
  ): Promise<readonly ToolResult[]> {
    const results: ToolResult[] = [];
    let next = 0;
    const work = async () => {
      for (let at = next++; at < calls.length; at = next++) {
        const result = await this.#runCall(calls[at]!);
        results[at] = result;
        await onResult(at, result);
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(MAX_PARALLEL, calls.length) }, work));
    } catch (problem) {
      // The request ends, so its other calls end too.
      this.cancel();
      return this.#failIfLate(problem);
    }
    return results;
  }

  async #runCall({ tool, args }: RequestedCall): Promise<ToolResult> {
    if (this.#calls >= this.#maxCalls)
      return protocolError(
        LIMIT_CODE,
        "The call was not made: the maximum number of calls is reached.",
      );
    this.#calls++;
    const values = parseArguments(args);
    if (!values) return protocolError(LIMIT_CODE, "The arguments are not a JSON object.");
    this.signal.throwIfAborted();
    const result = await this.#of.tools.call(this.x, tool, values, this.signal);
    const bytes = Buffer.byteLength(keptText(result));
    if (this.#bytes + bytes > this.#of.options.max_result_kb * KIB)
      return protocolError(LIMIT_CODE, "The result of the tool is too large.");
    this.#bytes += bytes;
    return result;
  }

  #failIfLate(problem: unknown): never {
    if (this.#deadline.aborted && !this.x.signal.aborted)
      fail("timeout", `The request took longer than ${this.#of.options.timeout_s} s.`, {
        code: "tool_timeout",
      });
    throw problem;
  }
}

/** The client receives the whole content of an error of a tool, and only the text of a result. */
const keptText = ({ text, error }: ToolResult): string =>
  error?.type === "tool" ? JSON.stringify(error.content) : text;

const failSameName = (name: string, other: string): never =>
  fail("invalid", `Two tools are named ${name.slice(0, 128)}. Rename ${other}.`, {
    param: "tools",
  });

function parseArguments(text: string): JsonObject | undefined {
  try {
    const values = JSON.parse(text === "" ? "{}" : text) as unknown;
    return isObject(values) ? values : undefined;
  } catch {
    return undefined;
  }
}

/** Headers that describe the client's connection or its whole request, not a turn. */
const OWN_HEADERS =
  /^(?:content-|accept-encoding$|transfer-encoding$|connection$|expect$|host$|idempotency-key$|service-zdr$|x-request-id$)/;

const turnHeaders = (headers: HeadersIn): HeadersIn =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.test(name)));

/** Returns the number of output tokens in a report of usage. */
export const outputTokens = (usage: unknown): number => {
  const tokens = isObject(usage) ? usage["output_tokens"] : undefined;
  return typeof tokens === "number" ? tokens : 0;
};

/** Adds two reports of usage, member by member. Members that are no numbers are those of the last. */
export function addUsage(sum: unknown, more: unknown): unknown {
  if (typeof sum === "number" && typeof more === "number") return sum + more;
  if (!isObject(sum) || !isObject(more)) return more ?? sum;
  const names = new Set([...Object.keys(sum), ...Object.keys(more)]);
  return Object.fromEntries([...names].map((name) => [name, addUsage(sum[name], more[name])]));
}
