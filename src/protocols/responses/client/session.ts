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

/** The response that the provider holds on the connection. */
interface HeldResponse {
  readonly id: string;
  /** Number of items of its request's input, and their hash: an idle connection keeps no content. */
  readonly count: number;
  readonly hash: string;
}

const hashOf = (items: readonly Json[]): string =>
  createHash("sha256").update(JSON.stringify(items)).digest("base64");

export class ResponsesProviderSession implements ProviderSession {
  #held: HeldResponse | undefined;
  /** The complete input of the request that runs. */
  #input: readonly Json[] | undefined;
  #isContinued = false;
  #hasBegun = false;

  get continuable(): string | undefined {
    return this.#held?.id;
  }

  prepareMessage(out: Outgoing, continued: ContinuedResponse | undefined): boolean {
    if (out.get("background") === true) return false;
    const input = out.get("input");
    const items = Array.isArray(input) ? (input as readonly Json[]) : undefined;
    this.#input = items;
    this.#hasBegun = false;
    this.#isContinued = continued !== undefined && this.#holds(continued);
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
   * Whether the provider would read the same input: the response belongs to the request that this
   * connection sent, with the same input, and nothing was inserted or removed since.
   */
  #holds({ id, items }: ContinuedResponse): boolean {
    const held = this.#held;
    const input = this.#input;
    if (held?.id !== id || !input || input.length <= items || held.count > items) return false;
    return hashOf(input.slice(0, held.count)) === held.hash;
  }

  #hold(response: JsonObject | undefined): void {
    const id = asText(response?.["id"]);
    const input = this.#input;
    this.#input = undefined;
    this.#held =
      id !== undefined && input ? { id, count: input.length, hash: hashOf(input) } : undefined;
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
