// Sends JSON-RPC messages to a remote server and reads its responses, with bounds on their size.
import {
  getFault,
  type Context,
  type HeadersIn,
  type HeadersOut,
  type JsonObject,
  type StreamedRequestInit,
  type StreamedResponse,
} from "tollgate/plugin";
import { createEventDecoder } from "tollgate/protocols/sse";
import {
  canceledError,
  checkServerMessage,
  isResponse,
  RPC_ERRORS,
  wrongShape,
  type RpcId,
  type RpcRequest,
  type RpcResponse,
} from "../json-rpc.ts";
import { ServerError } from "../tool-server.ts";

/** Largest message of a server, in bytes. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Largest stream of one response, in bytes. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** Whether a code of `ctx.fetchStream` means that no connection was established. */
const isUnsentCode = (code = ""): boolean =>
  code === "connect_failed" || code === "tls_failed" || code.startsWith("address_");

/** A message to a server. */
export interface Posting {
  readonly message: JsonObject;
  readonly headers: HeadersOut;
  readonly signal: AbortSignal;
  /** Maximum time without data, in milliseconds. */
  readonly idleMs: number;
  /** Receives messages that precede the response. */
  readonly onMessage?: ((message: RpcRequest) => void) | undefined;
}

/** Response of a server. `response` is undefined for a notification. */
export interface PostedResponse {
  readonly status: number;
  readonly headers: HeadersIn;
  readonly response: RpcResponse | undefined;
}

type Fetch = Pick<Context, "fetchStream">;

/** Sends a message. Resolves with the response, even if it is an error of JSON-RPC. */
export async function post(ctx: Fetch, url: string | URL, of: Posting): Promise<PostedResponse> {
  const answer = await send(ctx, url, toInit("POST", of, POST_HEADERS, of.message));
  try {
    const { status, headers } = answer;
    // A response of the gateway has an ID and is not answered.
    const id = "method" in of.message ? (of.message["id"] as RpcId | undefined) : undefined;
    if (status === 202 || status === 204 || (status < 300 && id === undefined)) {
      if (id !== undefined) throw wrongShape("is empty");
      answer.cancel();
      return { status, headers, response: undefined };
    }
    if (status >= 300) return { status, headers, response: await readError(answer, of.signal) };
    const response = isEventStream(answer)
      ? await readEventResponse(answer, id!, of)
      : readJsonResponse(await readJson(answer, of.signal), id!);
    return { status, headers, response };
  } catch (problem) {
    // A body that is not read keeps its connection.
    answer.cancel();
    throw problem;
  }
}

const POST_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** Opens the stream of a session. Resolves to undefined if the server has none. */
export async function openStream(
  ctx: Fetch,
  url: string | URL,
  of: Omit<Posting, "message">,
): Promise<(() => Promise<void>) | undefined> {
  const answer = await send(ctx, url, toInit("GET", of, { accept: "text/event-stream" }));
  if (answer.status >= 300 || !isEventStream(answer)) {
    answer.cancel();
    return undefined;
  }
  return async () => {
    await readEvents(answer, of, () => undefined);
  };
}

const toInit = (
  method: string,
  { headers: own, signal, idleMs }: Omit<Posting, "message">,
  headers: HeadersOut,
  message?: JsonObject,
): StreamedRequestInit & { readonly signal: AbortSignal } => {
  const of = { method, headers: { ...headers, ...own }, signal, idleMs };
  return message ? { ...of, body: JSON.stringify(message) } : of;
};

const send = (
  ctx: Fetch,
  url: string | URL,
  init: ReturnType<typeof toInit>,
): Promise<StreamedResponse> =>
  init.signal.aborted
    ? Promise.reject(canceledError())
    : ctx.fetchStream(url, init).catch((problem: unknown) => {
        throw toServerError(problem, init.signal);
      });

/** Ends a session. Errors are ignored, because the server ends the session itself later. */
export async function deleteSession(
  ctx: Fetch,
  url: string | URL,
  of: Omit<Posting, "message">,
): Promise<void> {
  const answer = await send(ctx, url, toInit("DELETE", of, {})).catch(() => undefined);
  answer?.cancel();
}

/** Returns the error of JSON-RPC that the body contains. Throws if it contains none. */
async function readError(answer: StreamedResponse, signal: AbortSignal): Promise<RpcResponse> {
  const { status, headers } = answer;
  const text = await readText(answer, signal);
  if (status === 401 || status === 403) {
    const challenge = headers["www-authenticate"];
    throw new ServerError(
      status === 401
        ? "The server rejected the gateway's credential."
        : "The server does not permit this request with the gateway's credential.",
      { code: RPC_ERRORS.internal, progress: "rejected", challenge, status },
    );
  }
  try {
    const message = checkServerMessage(text);
    if (isResponse(message) && message.error) return message;
  } catch {
    // The error is not one of JSON-RPC.
  }
  const redirect = status < 400 ? " Redirects are not followed." : "";
  throw new ServerError(`The server responded with the status ${status}.${redirect}`, {
    code: RPC_ERRORS.internal,
    progress: status < 500 ? "rejected" : "unknown",
    status,
  });
}

const typeOf = ({ headers }: StreamedResponse): string => headers["content-type"] ?? "";

const isEventStream = (answer: StreamedResponse): boolean =>
  typeOf(answer).startsWith("text/event-stream");

async function readEventResponse(
  answer: StreamedResponse,
  id: RpcId,
  of: Posting,
): Promise<RpcResponse> {
  let found: RpcResponse | undefined;
  await readEvents(answer, of, (response) => {
    if (response.id === id || (response.error && response.id === undefined)) found = response;
    return found;
  });
  return found ?? failEnded();
}

function readJson(answer: StreamedResponse, signal: AbortSignal): Promise<string> {
  if (typeOf(answer).includes("json")) return readText(answer, signal);
  throw wrongShape("is neither JSON nor a stream of events");
}

function readJsonResponse(text: string, id: RpcId): RpcResponse {
  const message = checkServerMessage(text);
  if (!isResponse(message)) throw wrongShape("is not a response");
  if (message.id !== id && !message.error) throw wrongShape("has the ID of another request");
  return message;
}

const failEnded = (): never => {
  throw new ServerError("The server ended the stream without a result.", {
    code: RPC_ERRORS.internal,
    progress: "unknown",
  });
};

async function readText(answer: StreamedResponse, signal: AbortSignal): Promise<string> {
  let bytes: Buffer | undefined;
  try {
    bytes = await answer.bytes(MAX_MESSAGE_BYTES);
  } catch (problem) {
    throw toServerError(problem, signal);
  }
  if (!bytes) throw wrongShape(`is larger than ${MAX_MESSAGE_BYTES} bytes`);
  return bytes.toString("utf8");
}

/** Reads events until `onResponse` returns a response, or the stream ends. */
async function readEvents(
  answer: StreamedResponse,
  of: Omit<Posting, "message">,
  onResponse: (response: RpcResponse) => RpcResponse | undefined,
): Promise<void> {
  let isDone = false;
  const decoder = createEventDecoder(
    (_, data) => {
      if (isDone || data === "") return;
      const message = checkServerMessage(data);
      if (isResponse(message)) isDone = onResponse(message) !== undefined;
      else of.onMessage?.(message);
    },
    { maxLineBytes: MAX_MESSAGE_BYTES, maxEventBytes: MAX_MESSAGE_BYTES },
  );
  let size = 0;
  try {
    await answer.read((piece) => {
      size += piece.length;
      if (size > MAX_STREAM_BYTES) throw wrongShape(`is larger than ${MAX_STREAM_BYTES} bytes`);
      decoder.push(piece);
      if (isDone) answer.cancel();
    });
    if (!isDone) decoder.end();
  } catch (problem) {
    throw toServerError(problem, of.signal);
  }
}

/** Converts a failure of the connection to an error of the server. */
function toServerError(problem: unknown, signal: AbortSignal): unknown {
  if (problem instanceof ServerError) return problem;
  const fault = getFault(problem);
  if (signal.aborted || fault?.kind === "canceled") return problem;
  const isTimeout = fault?.kind === "timeout";
  return new ServerError(
    isTimeout
      ? "The server did not respond in time."
      : "The server cannot be reached, or its connection broke.",
    {
      code: RPC_ERRORS.internal,
      progress: isUnsentCode(fault?.code ?? undefined) ? "unsent" : "unknown",
      status: isTimeout ? 504 : 502,
    },
  );
}
