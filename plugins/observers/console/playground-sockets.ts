// Connects the playground to a WebSocket of the port that clients use. The page cannot open that
// socket itself, because its content security policy allows only the admin listener. Therefore
// the page reads the messages as one streamed response and sends its own as requests, which have
// the same protection as any other request of the console. The key is one that the reader entered, so all
// rules and limits apply, and the ledger records each response.
import { randomBytes } from "node:crypto";
import {
  type Body,
  type Context,
  fail,
  getFault,
  type OwnSocket,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";
import { HEADER_VALUE, SECURITY_HEADERS } from "./playground-proxy.ts";

interface OpenSocket {
  readonly socket: OwnSocket;
  /** The admin who opened it. Other admins cannot send to it. */
  readonly owner: string;
}

const MAX_OPEN = 8;
const MAX_MESSAGES = 64;
/** A relay of a frontend, with the model in the query. */
const SOCKET_PATH = /^\/v1\/realtime\?model=[\w.:@+~%/-]{1,300}$/;

export function createPlaygroundSockets(ctx: Pick<Context, "connect" | "signal">) {
  const open = new Map<string, OpenSocket>();

  return {
    /** Opens a socket, and streams its messages as lines of JSON. */
    async open(x: RequestHead, body: Body): Promise<RouteResponse> {
      const { path, key, zdr } = parseOpening(body);
      if (open.size >= MAX_OPEN)
        fail("overloaded", `Only ${MAX_OPEN} playground connections can be open at a time.`, {
          code: "too_many_playgrounds",
        });
      const id = randomBytes(16).toString("base64url");
      const entry = { owner: ownerOf(x), socket: undefined as OwnSocket | undefined };
      return {
        status: 200,
        headers: { ...SECURITY_HEADERS, "content-type": "application/octet-stream" },
        body: stream(),
      };

      async function* stream(): AsyncGenerator<string> {
        try {
          const socket = await ctx.connect(path, {
            headers: { authorization: `Bearer ${key}`, ...(zdr && { "service-zdr": zdr }) },
            subprotocols: ["realtime"],
            // A replaced config generation must end, and with it the connection.
            signal: AbortSignal.any([x.signal, ctx.signal]),
          });
          entry.socket = socket;
          open.set(id, { owner: entry.owner, socket });
          yield line({ type: "open", id });
          for await (const message of socket)
            yield line({ type: "message", message: message.toString() });
          yield line({ type: "closed", ...(await socket.closed) });
        } catch (problem) {
          const { message, code } = getFault(problem) ?? fail("internal", "", { cause: problem });
          yield line({ type: "rejected", message, code });
        } finally {
          open.delete(id);
          entry.socket?.close();
        }
      }
    },

    /** Sends messages to a socket, or closes it. */
    send(x: RequestHead, body: Body): RouteResponse {
      const { id, messages, close } = parseSending(body);
      const found = open.get(id);
      if (!found || found.owner !== ownerOf(x))
        return fail("not_found", "The connection is not open.", { code: "no_such_socket" });
      for (const message of messages) found.socket.send(message);
      if (close) found.socket.close();
      return { status: 204 };
    },
  };
}

const line = (of: object): string => `${JSON.stringify(of)}\n`;
const ownerOf = ({ identity }: RequestHead): string => identity?.id ?? "";

interface Opening {
  readonly path: string;
  readonly key: string;
  readonly zdr: string | undefined;
}

function parseOpening({ path, key, zdr }: Body): Opening {
  const isValid = (value: unknown) => typeof value === "string" && HEADER_VALUE.test(value);
  const flaw =
    typeof path !== "string" || !SOCKET_PATH.test(path)
      ? "path must be /v1/realtime with a model"
      : !isValid(key)
        ? "key must be an API key"
        : zdr !== undefined && !isValid(zdr)
          ? "zdr must be a valid header value"
          : undefined;
  if (flaw !== undefined)
    fail("invalid", `Invalid playground connection: ${flaw}.`, { code: "bad_input" });
  return { path, key, zdr } as Opening;
}

function parseSending({ id, messages = [], close = false }: Body) {
  const areTexts =
    Array.isArray(messages) &&
    messages.length <= MAX_MESSAGES &&
    messages.every((one) => typeof one === "string");
  if (typeof id !== "string" || !areTexts)
    return fail("invalid", "Invalid playground messages: send an id and a list of texts.", {
      code: "bad_input",
    });
  return { id, messages: messages as readonly string[], close: close === true };
}
