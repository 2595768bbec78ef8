// MCP servers of the gateway in the Responses API.
import {
  fail,
  type Body,
  type Context,
  type JsonObject,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";
import { streamTurns } from "../event-channel.ts";
import { GatewayTools, isServer } from "../gateway-tools.ts";
import type { ModelToolOptions } from "../options.ts";
import { ToolLoop } from "../tool-loop.ts";
import { Approvals } from "./approvals.ts";
import { RESPONSE_PREFIX, ResponseTurns } from "./response-turns.ts";
import { readToolRequest, type ToolRequest } from "./tool-request.ts";

export class ResponsesTools {
  readonly #ctx: Context;
  readonly #options: ModelToolOptions;
  readonly #tools: GatewayTools;
  readonly #approvals: Approvals;

  constructor(ctx: Context, options: ModelToolOptions) {
    this.#ctx = ctx;
    this.#options = options;
    this.#tools = new GatewayTools(ctx, options.origins);
    this.#approvals = new Approvals(ctx);
  }

  /** Returns the servers of the gateway that a request names. Undefined if it names none. */
  read(x: RequestHead, body: Body): ToolRequest | undefined {
    return readToolRequest(x, body, { tools: this.#tools, approvals: this.#approvals });
  }

  /** Returns the fields that replace the client's own, without servers of the gateway. */
  editsOf({ servers, tools, input }: ToolRequest, body: Body): Body {
    if (servers.length === 0 && input.some((part) => "approved" in part))
      fail("invalid", "An approved call needs its MCP server in tools.", { param: "tools" });
    const others = tools.filter((tool): tool is JsonObject => !isServer(tool));
    const edits: { [field: string]: Body[string] } = {
      input: Array.isArray(body["input"])
        ? input.flatMap((part) => ("item" in part ? [part.item] : []))
        : body["input"],
    };
    if (servers.length > 0) {
      edits["tools"] = others.length > 0 ? others : undefined;
      edits["tool_choice"] = undefined;
    }
    return edits;
  }

  /** Returns the fields of the first turn, for a count of its tokens. No approved call is made. */
  async expand(x: RequestHead, body: Body, request: ToolRequest): Promise<Body> {
    if (request.servers.length === 0) return this.editsOf(request, body);
    const input = request.input.filter((part) => "item" in part);
    const of = { request: { ...request, input }, body: body as JsonObject, send: undefined };
    const loop = this.#createLoop(x);
    return new ResponseTurns({ ...of, loop, approvals: this.#approvals }).expand();
  }

  /**
   * Returns the provider's ID of the last turn of a response, with which the response is continued.
   * Undefined for the ID of any other response.
   */
  async findUpstreamId(x: RequestHead, id: string): Promise<string | undefined> {
    if (!id.startsWith(RESPONSE_PREFIX) || x.privacy !== "off" || !x.identity) return undefined;
    const label = `parent=${id.slice(RESPONSE_PREFIX.length)}`;
    // Each turn has two rows, and so has each call of a tool.
    const limit = 2 * (this.#options.max_turns + this.#options.max_calls);
    const query = { key: x.identity.id, label };
    const { items } = await this.#ctx.ledger.listEntries(query, { limit }, { signal: x.signal });
    return items.findLast(({ target, upstreamId }) => target.protocol === "responses" && upstreamId)
      ?.upstreamId;
  }

  /** Runs the turns of a request. `onEnd` receives the complete response. */
  async respond(
    x: RequestHead,
    body: JsonObject,
    request: ToolRequest,
    onEnd: (response: JsonObject) => void,
  ): Promise<RouteResponse> {
    const limit = body["max_tool_calls"];
    const maxCalls = typeof limit === "number" ? limit : undefined;
    const loop = this.#createLoop(x, maxCalls);
    const of = { loop, request, body, approvals: this.#approvals };
    if (body["stream"] !== true) {
      const response = await new ResponseTurns({ ...of, send: undefined }).run();
      onEnd(response);
      return { status: 200, body: response };
    }
    return streamTurns(this.#ctx, loop, (send) => {
      const turns = new ResponseTurns({ ...of, send: (event) => send([event]) });
      return {
        run: async () => onEnd(await turns.run()),
        fail: ({ code, message }) => turns.fail(code ?? "server_error", message),
      };
    });
  }

  #createLoop(x: RequestHead, maxCalls?: number): ToolLoop {
    const services = { ctx: this.#ctx, tools: this.#tools, options: this.#options };
    return new ToolLoop(services, x, maxCalls);
  }
}
