// A scripted model API on a loopback port. It records each request, its connection, the sent part
// of each response, the usage that it billed, and the usage that it reported.
//
// Responses are written to the socket byte by byte, because HTTP libraries do not send the failures
// that have to be tested.
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Usage } from "../../model/usage.ts";
import { jsonResponse, type ScriptedResponse, sendResponse } from "./scripted-response.ts";

/** One request, as it was received. */
export interface UpstreamRequest {
  /** Number of the request, from 1, in the order in which the bodies were read completely. */
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** Time of the request in milliseconds, as performance.now() returns it. */
  readonly at: number;
  /** Number of the connection, from 1. */
  readonly connection: number;
  /** Number of bytes of the response body that were written. */
  readonly bytesSent: number;
  /**
   * State of the response. `truncated`: it was truncated as scripted. `aborted`: the client closed
   * the connection first.
   */
  readonly state: "open" | "complete" | "truncated" | "aborted";
  readonly abortedAt: number | undefined;
  /** Resolves when the state is no longer `open`. */
  readonly whenDone: Promise<void>;
  /** Returns the parsed body, whose type only the test knows. */
  // oxlint-disable-next-line typescript/no-explicit-any
  json(): any;
}

/**
 * Bill of one accepted request: the usage that it costs, and the usage that was reported to the
 * client before the connection ended.
 */
export interface UpstreamBill {
  readonly requestNumber: number;
  /** The credential, without "Bearer ". */
  readonly key: string | undefined;
  readonly model: string | undefined;
  readonly usage: Usage;
  readonly reportedUsage: Usage | undefined;
}

/**
 * Response of one route: a response, or a function of the request. A function that throws ends the
 * test process with an uncaught error.
 */
export type ScriptedReply =
  | ScriptedResponse
  | ((request: UpstreamRequest) => ScriptedResponse | Promise<ScriptedResponse>);
/** A list of responses is used in order, and its last one is repeated. */
export type ScriptedRoute = ScriptedReply | readonly ScriptedReply[];
/**
 * Responses by route, such as "POST /v1/messages", "POST /v1/*", "GET *", or "*". The most specific
 * route applies. Queries are ignored.
 */
export interface ScriptedRoutes {
  readonly [route: string]: ScriptedRoute;
}

/**
 * A fake upstream that is listening. A test sends requests to `url` and reads the records.
 * Disposing of it (`await using`) closes all connections.
 */
export interface TestUpstream extends AsyncDisposable {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  readonly port: number;
  readonly requests: readonly UpstreamRequest[];
  /** Bills of all accepted requests: the reference for the amounts that the upstream charges. */
  readonly bills: readonly UpstreamBill[];
  /** Number of open connections. */
  readonly connections: number;
  /** Replaces the responses of these routes. */
  setRoutes(routes: ScriptedRoutes): void;
  /**
   * Resolves to the n-th request when it has been received. The request may have been received
   * before the call.
   */
  waitForRequest(n: number, withinMs?: number): Promise<UpstreamRequest>;
  /** Deletes all records of requests and bills. The next request has the number 1 again. */
  reset(): void;
  close(): Promise<void>;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Starts a fake upstream on a loopback port. Without routes, every request gets a 404 with an
 * explanation. Rejects if no port is available.
 */
export async function startUpstream(routes: ScriptedRoutes = {}): Promise<TestUpstream> {
  const book = new Map<string, ScriptedRoute>(Object.entries(routes));
  const used = new Map<ScriptedRoute, number>();
  const requests: UpstreamRequest[] = [];
  const bill: UpstreamBill[] = [];
  const sockets = new Map<Socket, number>();

  const react = (request: UpstreamRequest): ScriptedResponse | Promise<ScriptedResponse> => {
    const found = findRoute(book, request.method, request.path);
    if (!found)
      return jsonResponse(
        { error: { message: `The fake upstream has no route ${request.method} ${request.path}.` } },
        404,
      );
    if (!Array.isArray(found)) return resolveReply(found as ScriptedReply, request);
    const list = found as readonly ScriptedReply[];
    const turn = used.get(list) ?? 0;
    used.set(list, turn + 1);
    return resolveReply(list[Math.min(turn, list.length - 1)]!, request);
  };

  const answer = async (message: IncomingMessage, body: Buffer) => {
    const { socket } = message;
    const { request, settle } = createRequest(
      message,
      body,
      requests.length + 1,
      sockets.get(socket) ?? 0,
    );
    requests.push(request);
    socket.once("close", () => settle("aborted"));
    let line: Mutable<UpstreamBill> | undefined;
    const onUsageReported = (usage: Usage) =>
      line && (line.reportedUsage = { ...line.reportedUsage, ...usage });
    const reaction = await react(request);
    if (reaction.billedUsage) {
      line = {
        requestNumber: request.number,
        ...credentialOf(request),
        usage: reaction.billedUsage,
        reportedUsage: undefined,
      };
      bill.push(line);
    }
    const sent = (bytes: number) => ((request as Mutable<UpstreamRequest>).bytesSent = bytes);
    const end = await sendResponse(socket, reaction, request.method, {
      onBytesSent: sent,
      onUsageReported,
    });
    if (end !== "stalled") settle(end === "closed" ? "aborted" : end);
  };

  const server = createUpstreamServer(sockets, answer);
  const port = await listen(server);

  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets.keys()) socket.destroy();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    bills: bill,
    get connections() {
      return sockets.size;
    },
    setRoutes(more) {
      for (const [route, reaction] of Object.entries(more)) book.set(route, reaction);
    },
    async waitForRequest(n, withinMs = 5000) {
      const end = performance.now() + withinMs;
      while (requests.length < n) {
        if (performance.now() > end)
          throw new Error(`Request ${n} did not reach the upstream within ${withinMs} ms.`);
        await sleep(1);
      }
      return requests[n - 1]!;
    },
    reset() {
      requests.length = bill.length = 0;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Creates a server that passes each request on when its body was read, one at a time for each
 * connection. `sockets` are the open sockets, with their numbers.
 */
function createUpstreamServer(
  sockets: Map<Socket, number>,
  answer: (message: IncomingMessage, body: Buffer) => Promise<void>,
): Server {
  const busy = new Map<Socket, Promise<void>>();
  let connections = 0;
  const server = createServer();
  server.on("connection", (socket: Socket) => {
    sockets.set(socket, ++connections);
    socket.setNoDelay(true);
    socket.setMaxListeners(0);
    // Ignore resets by the client. The test that causes one checks it.
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  const serve = async (message: IncomingMessage, response: { detachSocket(s: Socket): void }) => {
    const { socket } = message;
    // The socket is detached from node:http, which would refuse to write most of the scripted
    // failures.
    response.detachSocket(socket);
    const body = await readBody(message);
    if (!body) return;
    const turn = (busy.get(socket) ?? Promise.resolve()).then(() => answer(message, body));
    busy.set(socket, turn);
    await turn;
  };
  const fatal = (error: unknown) => {
    // A script that throws is a broken test, not a failure of the gateway, so the test process
    // ends.
    queueMicrotask(() => {
      throw error;
    });
  };
  server.on("request", (message, response) => void serve(message, response).catch(fatal));
  server.on("checkContinue", (message: IncomingMessage, response) => {
    message.socket.write("HTTP/1.1 100 Continue\r\n\r\n");
    void serve(message, response).catch(fatal);
  });
  return server;
}

const resolveReply = (reaction: ScriptedReply, request: UpstreamRequest) =>
  typeof reaction === "function" ? reaction(request) : reaction;

function findRoute(book: ReadonlyMap<string, ScriptedRoute>, method: string, path: string) {
  let best: { readonly route: string; readonly rank: number } | undefined;
  for (const route of book.keys()) {
    const [verb, pattern] = route === "*" ? ["*", "*"] : (route.split(" ") as [string, string]);
    if (verb !== "*" && verb !== method) continue;
    const fits = pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
    // The longest path takes precedence. For the same path, a method takes precedence over `*`.
    const rank =
      4 * pattern.replace("*", "").length + (pattern === path ? 2 : 0) + (verb === "*" ? 0 : 1);
    if (fits && rank > (best?.rank ?? -1)) best = { route, rank };
  }
  return best && book.get(best.route);
}

function createRequest(message: IncomingMessage, body: Buffer, n: number, connection: number) {
  const url = new URL(message.url ?? "/", "http://upstream");
  const over = Promise.withResolvers<void>();
  const request: Mutable<UpstreamRequest> = {
    number: n,
    method: message.method ?? "",
    path: url.pathname,
    query: url.searchParams,
    headers: message.headers,
    rawHeaders: message.rawHeaders,
    body,
    at: performance.now(),
    connection,
    bytesSent: 0,
    state: "open",
    abortedAt: undefined,
    whenDone: over.promise,
    json: () => JSON.parse(body.toString()),
  };
  const settle = (state: UpstreamRequest["state"]) => {
    if (request.state !== "open") return;
    request.state = state;
    if (state === "aborted") request.abortedAt = performance.now();
    over.resolve();
  };
  return { request: request as UpstreamRequest, settle };
}

function credentialOf(request: UpstreamRequest) {
  const header = request.headers.authorization ?? request.headers["x-api-key"];
  const model = requestedModel(request);
  return { key: (header as string | undefined)?.replace(/^Bearer /, ""), model };
}

function requestedModel(request: UpstreamRequest): string | undefined {
  try {
    return request.json().model;
  } catch {
    return undefined;
  }
}

async function readBody(message: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  try {
    for await (const part of message) parts.push(part as Buffer);
  } catch {
    // The client disconnected before its request was complete, so there is no request to answer or
    // record.
    return undefined;
  }
  return Buffer.concat(parts);
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}
