// Responses over a WebSocket (`OpenAI-Beta: responses_websockets=2026-02-06`). Each
// `response.create` is one request. The client receives the events of a stream, each with the ID of
// its lane.
import {
  fail,
  type Body,
  type Json,
  type JsonObject,
  type RequestHead,
  type RouteInput,
  type SocketError,
  type SocketMessage,
  type SocketRequest,
  type SocketSession,
} from "tollgate/plugin";
import { failPreviousResponse } from "tollgate/protocols/responses";
import { finalResponseText } from "./item-memory.ts";
import type { ConversationMemory } from "./conversation-memory.ts";

const STREAM_ID = /^[\w.-]{1,256}$/;
/** Maximum size of a response in the memory, in bytes. */
const MAX_REMEMBERED_RESPONSE = 2 * 1024 * 1024;
/** Maximum size of a continued conversation, in bytes. */
const MAX_CONVERSATION_BYTES = 32 * 1024 * 1024;

/** Finds a conversation in this process, or in the process that served the key before. */
export type FindConversation = (
  key: string,
  id: string,
  connection: object,
) => Promise<readonly JsonObject[] | undefined>;

/** Services of the frontend for its sockets. */
export interface ResponsesSocketOptions {
  readonly memory: ConversationMemory | undefined;
  readonly find: FindConversation | undefined;
  /** Reads a request as the HTTP route does. */
  readInput(x: RequestHead, body: Body): Promise<RouteInput>;
}

export class ResponsesSession implements SocketSession {
  readonly #options: ResponsesSocketOptions;
  readonly #owner: string;

  constructor(x: RequestHead, options: ResponsesSocketOptions) {
    this.#options = options;
    this.#owner = ownerOf(x);
  }

  readInput(x: RequestHead, body: Body): Promise<RouteInput> {
    return readSocketInput(x, body, this, this.#options);
  }

  readMessage(message: SocketMessage): SocketRequest | undefined {
    const event = parseEvent(message);
    const { type, stream_id: lane } = event;
    // Codex reports that it has processed a response. The gateway does not use this report.
    if (type === "response.processed") return undefined;
    if (type !== "response.create")
      fail("invalid", `Unknown event type "${String(type)}". Send response.create.`, {
        code: "unknown_event_type",
        param: "type",
      });
    if (lane !== undefined && lane !== null && !isStreamId(lane))
      fail(
        "invalid",
        "The 'stream_id' field must be a non-empty string with at most 256 characters and may " +
          "only contain letters, numbers, underscores, hyphens, and periods.",
        { code: "invalid_stream_id", param: "stream_id" },
      );
    return { body: message, ...(isStreamId(lane) && { lane }) };
  }

  encodeEvent(data: string, { lane }: SocketRequest): string | undefined {
    if (data === "[DONE]") return undefined;
    const event = ERROR_EVENT.test(data) ? toSocketErrorEvent(data) : data;
    if (lane === undefined) return event;
    if (event.startsWith('{"')) return `{"stream_id":${JSON.stringify(lane)},${event.slice(1)}`;
    const parsed = tryParse(event);
    // Text that is no event belongs to no lane.
    return parsed !== undefined && isObject(parsed)
      ? JSON.stringify({ stream_id: lane, ...parsed })
      : undefined;
  }

  encodeError(
    { status, body, headers }: SocketError,
    request: SocketRequest | undefined,
    message?: SocketMessage,
  ): string {
    const lane = request ? request.lane : laneOf(message);
    return JSON.stringify({
      type: "error",
      ...(lane !== undefined && { stream_id: lane }),
      status,
      error: body["error"] ?? body,
      headers,
    });
  }

  encodeNotice(notice: "draining" | "expired"): string {
    return JSON.stringify({
      type: "error",
      status: 400,
      error: {
        type: "invalid_request_error",
        code: "websocket_connection_limit_reached",
        message:
          notice === "expired"
            ? "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue."
            : "The gateway is shutting down. Create a new websocket connection to continue.",
        param: null,
      },
    });
  }

  close(): void {
    this.#options.memory?.forgetConnection(this.#owner, this);
  }
}

const isStreamId = (lane: unknown): lane is string =>
  typeof lane === "string" && STREAM_ID.test(lane);

function parseEvent(message: SocketMessage): JsonObject {
  if (typeof message !== "string")
    return fail("invalid", "Binary messages are not supported. Send JSON text.", {
      code: "invalid_message",
    });
  const event = tryParse(message);
  if (event === undefined || !isObject(event))
    return fail("invalid", "The message is not a JSON object.", { code: "invalid_json" });
  return event;
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function tryParse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Returns the lane of a message that was rejected, so that its sender can recognize the error. */
function laneOf(message: SocketMessage | undefined): string | undefined {
  const event = typeof message === "string" ? tryParse(message) : undefined;
  const lane = (event as { stream_id?: unknown } | null | undefined)?.stream_id;
  return isStreamId(lane) ? lane : undefined;
}

/** The beginning of an error event of a stream. Other events may contain the same text later. */
const ERROR_EVENT = /^\s*\{\s*(?:"sequence_number"\s*:\s*\d+\s*,\s*)?"type"\s*:\s*"error"/;

/**
 * In a stream, the members of an error are also at the top level. On a socket, they are only in
 * `error`.
 */
function toSocketErrorEvent(data: string): string {
  const event = tryParse(data) as JsonObject | undefined;
  if (!event) return data;
  const { code, message, param } = event;
  return JSON.stringify({
    type: "error",
    ...(event["sequence_number"] !== undefined && { sequence_number: event["sequence_number"] }),
    error: event["error"] ?? { type: "server_error", code, message, param },
  });
}

/** Reads the request of one `response.create`. */
async function readSocketInput(
  x: RequestHead,
  body: Body,
  connection: object,
  { memory, find, readInput }: ResponsesSocketOptions,
): Promise<RouteInput> {
  const own = asItems(body["input"]);
  const previous = body["previous_response_id"];
  const id = previous == null ? undefined : String(previous);
  const before =
    id === undefined || x.privacy !== "off" ? undefined : await find?.(ownerOf(x), id, connection);
  const envelope: Body = { type: undefined, stream_id: undefined, generate: undefined };
  const input = before && [...before, ...own];
  if (input && JSON.stringify(input).length > MAX_CONVERSATION_BYTES) failPreviousResponse(id!);
  const continued: Body = input ? { input, previous_response_id: undefined } : {};
  const continues = before && { id: id!, items: before.length };
  const read = await readInput(x, { ...body, ...envelope, ...continued });
  const remembers = memory !== undefined && x.privacy === "off";
  const remember = (response: JsonObject): void => {
    if (typeof response["id"] !== "string") return;
    memory?.add(ownerOf(x), {
      id: response["id"],
      parent: before ? id : undefined,
      input: own,
      output: replayable(response["output"]),
      connection: body["store"] === false ? connection : undefined,
    });
  };
  const result: RouteInput = {
    ...read,
    ...(continues && { continues }),
    stream: true,
    edits: { ...envelope, ...continued, ...read.edits, stream: true },
    // If the provider stores earlier turns, the gateway does not have the whole conversation.
    record:
      remembers && (id === undefined || before)
        ? {
            maxBytes: MAX_REMEMBERED_RESPONSE,
            onRecorded(got) {
              read.record?.onRecorded(got);
              const text = finalResponseText(got.contentType, got.body);
              const event = text === undefined ? undefined : (tryParse(text) as JsonObject);
              const response = event?.["response"] as JsonObject | undefined;
              if (response && response["status"] !== "failed") remember(response);
            },
          }
        : read.record,
  };
  if (body["generate"] !== false) return result;
  const response = warmUpResponse(x, String(body["model"]));
  if (remembers) remember(response);
  return { ...result, record: undefined, answer: warmUpAnswer(response) };
}

const ownerOf = (x: RequestHead): string => x.identity?.id ?? "";

/** Returns the input as a list of items. */
function asItems(input: Body[string]): JsonObject[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return Array.isArray(input) ? (input as JsonObject[]) : [];
}

/**
 * Returns the items of a response that can be sent to a provider again. Reasoning without its
 * content is stored only at the provider.
 */
function replayable(output: Json | undefined): JsonObject[] {
  if (!Array.isArray(output)) return [];
  return (output as JsonObject[]).filter(
    (item) =>
      item["type"] !== "reasoning" ||
      item["encrypted_content"] != null ||
      (Array.isArray(item["content"]) && item["content"].length > 0),
  );
}

/** A response without output, whose input is kept for the next request. */
const warmUpResponse = (x: RequestHead, model: string): JsonObject => ({
  id: `resp_${x.id}`,
  object: "response",
  created_at: 0,
  status: "completed",
  error: null,
  incomplete_details: null,
  model,
  output: [],
  usage: {
    input_tokens: 0,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 0,
  },
});

/** Answers `generate: false`. No provider is called, and nothing is billed. */
function warmUpAnswer(response: JsonObject): NonNullable<RouteInput["answer"]> {
  const started = { ...response, status: "in_progress", usage: null };
  const events = [
    { type: "response.created", sequence_number: 0, response: started },
    { type: "response.in_progress", sequence_number: 1, response: started },
    { type: "response.completed", sequence_number: 2, response },
  ];
  return {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    body: Buffer.from(
      events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
    ),
  };
}
