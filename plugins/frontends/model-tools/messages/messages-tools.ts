// MCP servers of the gateway in the Messages API.
import {
  type Body,
  type Context,
  type Fault,
  type JsonObject,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";
import { streamTurns } from "../event-channel.ts";
import { GatewayTools, isServer } from "../gateway-tools.ts";
import type { ModelToolOptions } from "../options.ts";
import { ToolLoop } from "../tool-loop.ts";
import { MessageTurns } from "./message-turns.ts";
import { readToolRequest, type ToolRequest } from "./tool-request.ts";

/** Returns the body of an error in the protocol. */
export type EncodeError = (fault: Fault, x: RequestHead) => unknown;

export class MessagesTools {
  readonly #ctx: Context;
  readonly #options: ModelToolOptions;
  readonly #tools: GatewayTools;
  readonly #encodeError: EncodeError;

  constructor(ctx: Context, options: ModelToolOptions, encodeError: EncodeError) {
    this.#ctx = ctx;
    this.#options = options;
    this.#tools = new GatewayTools(ctx, options.origins);
    this.#encodeError = encodeError;
  }

  /** Returns the servers of the gateway that a request names. Undefined if it names none. */
  read(x: RequestHead, body: Body): ToolRequest | undefined {
    return readToolRequest(x, body, this.#tools);
  }

  /** Returns the fields that replace the client's own, without servers of the gateway. */
  editsOf({ servers, tools, remoteServers, messages }: ToolRequest): Body {
    if (servers.length === 0) return { messages };
    const others = tools.filter((tool): tool is JsonObject => !isServer(tool));
    return {
      messages,
      tools: others.length > 0 ? others : undefined,
      mcp_servers: remoteServers.length > 0 ? remoteServers : undefined,
      ...(others.length === 0 && { tool_choice: undefined }),
    };
  }

  /** Returns the fields of the first turn, for a count of its tokens. */
  async expand(x: RequestHead, body: JsonObject, request: ToolRequest): Promise<Body> {
    const loop = this.#createLoop(x);
    return new MessageTurns({ loop, request, body, send: undefined }).expand();
  }

  /** Runs the turns of a request. */
  async respond(x: RequestHead, body: JsonObject, request: ToolRequest): Promise<RouteResponse> {
    const loop = this.#createLoop(x);
    if (body["stream"] !== true) {
      const turns = new MessageTurns({ loop, request, body, send: undefined });
      return { status: 200, body: await turns.run() };
    }
    return streamTurns(this.#ctx, loop, (send) => ({
      run: async () => void (await new MessageTurns({ loop, request, body, send }).run()),
      fail: (fault) => send([this.#encodeError(fault, x) as JsonObject]),
    }));
  }

  #createLoop(x: RequestHead): ToolLoop {
    return new ToolLoop({ ctx: this.#ctx, tools: this.#tools, options: this.#options }, x);
  }
}
