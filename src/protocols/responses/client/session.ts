// Requests over a WebSocket of the provider (`response.create`). The connection holds its last
// response in memory, so a request that continues it contains only the items that are new.
import { createHash } from "node:crypto";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type {
  ContinuedResponse,
  ProviderMessage,
  ProviderSession,
  SocketMessage,
} from "../../../plugin/socket.ts";
import { asNumber, asObject, asText, parseObject } from "../../json-values.ts";

const LAST_EVENTS: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "error",
]);
/**
 * Last events of responses that the connection can continue. After any other last event, the
 * provider deletes the state of the response.
 */
const CONTINUABLE_EVENTS: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
]);

/** Number of items of a request's input, and their hash: a connection keeps no content. */
interface HashedInput {
  readonly count: number;
  readonly hash: string;
}

/** The response that the provider holds on the connection. */
interface HeldResponse extends HashedInput {
  readonly id: string;
}

export class ResponsesProviderSession implements ProviderSession {
  #held: HeldResponse | undefined;
  /** The complete input of the request that runs. */
  #input: HashedInput | undefined;
  #isContinued = false;
  #hasBegun = false;

  get continuable(): string | undefined {
    return this.#held?.id;
  }

  prepareMessage(out: Outgoing, continued: ContinuedResponse | undefined): boolean {
    if (out.get("background") === true) return false;
    const input = out.get("input");
    const items = Array.isArray(input) ? (input as readonly Json[]) : undefined;
    this.#hasBegun = false;
    this.#isContinued = this.#read(items, continued);
    if (this.#isContinued) {
      out.set("input", items!.slice(continued!.items));
      out.set("previous_response_id", continued!.id);
    }
    this.#held = undefined;
    out.set("type", "response.create");
    out.remove("stream");
    out.remove("background");
    return true;
  }

  readMessage(message: SocketMessage): ProviderMessage | undefined {
    const text = message.toString();
    const event = parseObject(text);
    const type = asText(event?.["type"]);
    if (!event || type === undefined) throw new TypeError("The message is not an event.");
    if (type === "error") return this.#readError(event);
    this.#hasBegun = true;
    const isLast = LAST_EVENTS.has(type);
    if (CONTINUABLE_EVENTS.has(type)) this.#hold(asObject(event["response"]));
    else if (isLast) this.#input = undefined;
    return {
      // A line break in the JSON text would end the data of the event.
      event: `event: ${type}\ndata: ${/[\r\n]/.test(text) ? JSON.stringify(event) : text}\n\n`,
      isLast,
    };
  }

  /**
   * Reads the input of a request. Returns whether the request can continue its response, because
   * the provider would read the same input. The response must belong to the request that this
   * connection sent, with the same input, and nothing was inserted or removed since.
   */
  #read(items: readonly Json[] | undefined, continued: ContinuedResponse | undefined): boolean {
    this.#input = undefined;
    if (!items) return false;
    const held = this.#held;
    const mayContinue =
      continued !== undefined &&
      held?.id === continued.id &&
      items.length > continued.items &&
      held.count <= continued.items;
    const hash = createHash("sha256");
    let isSame = mayContinue && held.count === 0;
    for (const [at, item] of items.entries()) {
      hash.update(JSON.stringify(item)).update("\n");
      if (mayContinue && at + 1 === held.count) isSame = hash.copy().digest("base64") === held.hash;
    }
    this.#input = { count: items.length, hash: hash.digest("base64") };
    return isSame;
  }

  #hold(response: JsonObject | undefined): void {
    const id = asText(response?.["id"]);
    const input = this.#input;
    this.#input = undefined;
    this.#held = id !== undefined && input ? { id, ...input } : undefined;
  }

  #readError(event: JsonObject): ProviderMessage {
    this.#input = undefined;
    const error = asObject(event["error"]) ?? event;
    const code = asText(error["code"]);
    if (this.#hasBegun) {
      // Over HTTP, the members of an error are at the top.
      const { message = null, param = null } = error;
      const flat = { type: "error", code: code ?? null, message, param, error };
      return { event: `event: error\ndata: ${JSON.stringify(flat)}\n\n`, isLast: true };
    }
    return {
      isLast: true,
      rejection: {
        status: errorStatus(asNumber(event["status"]), asText(error["type"])),
        body: { error },
        headers: headersOf(asObject(event["headers"])),
      },
      needsNewConnection:
        code === "websocket_connection_limit_reached" ||
        (this.#isContinued && code === "previous_response_not_found"),
    };
  }
}

/** Returns the headers that an error event contains, in the form of HTTP headers. */
function headersOf(members: JsonObject = {}): HeadersIn {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(members))
    if (typeof value === "string" || typeof value === "number")
      headers[name.toLowerCase()] = String(value);
  return headers;
}

/** Returns the status that a request over HTTP would get. */
function errorStatus(status: number | undefined, type: string | undefined): number {
  if (status !== undefined && status >= 400 && status < 600) return status;
  return type === "server_error" ? 500 : 400;
}
