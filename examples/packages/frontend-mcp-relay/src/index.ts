import { createHmac, timingSafeEqual } from "node:crypto";
import { defineFrontend, fail, type RequestHead, type RouteResponse } from "tollgate/plugin";
import { parseEventText, createEventSplitter } from "tollgate/protocols/sse";

type Message = { readonly [name: string]: unknown };
type IsAllowed = (name: unknown) => boolean;

/** Headers of MCP that are forwarded to the server, and to the client. */
const REQUEST_HEADERS = ["accept", "content-type", "last-event-id", "mcp-protocol-version"];
const RESPONSE_HEADERS = ["content-type", "mcp-protocol-version", "retry-after"];
const SESSION = "mcp-session-id";

const pick = (names: readonly string[], get: (name: string) => unknown) =>
  Object.fromEntries(
    names.map((name) => [name, get(name)]).filter(([, value]) => typeof value === "string"),
  ) as Record<string, string>;

/** Returns whether the client may see and call a tool: tools of its key, of its labels, and of all keys. */
function allowed(
  { identity }: RequestHead,
  tools: Readonly<Record<string, readonly string[]>>,
): IsAllowed {
  const labels = Object.entries(identity?.labels ?? {});
  const owners = [identity?.id ?? "", "*", ...labels.map((pair) => `label:${pair.join("=")}`)];
  const patterns = owners.flatMap((one) => tools[one] ?? []);
  return (name) =>
    patterns.some((one) =>
      one.endsWith("*") ? String(name).startsWith(one.slice(0, -1)) : one === name,
    );
}

/** Removes from a list the tools that the client may not call. Other messages are unchanged. */
function filtered(text: string, isAllowed: IsAllowed): string {
  const message = JSON.parse(text) as Message;
  const result = message["result"] as { tools?: readonly Message[] } | undefined;
  if (!Array.isArray(result?.tools)) return text;
  const tools = (result.tools as readonly Message[]).filter(({ name }) => isAllowed(name));
  return JSON.stringify({ ...message, result: { ...result, tools } });
}

/** Forwards complete events only, so that a list in an event can be filtered. */
async function* events(body: ReadableStream<Uint8Array>, isAllowed: IsAllowed) {
  let complete: string[] = [];
  const reader = createEventSplitter((bytes, from, to) => {
    const event = bytes.subarray(from, to);
    const data = parseEventText(event)?.data;
    if (data === undefined) return complete.push(String(event));
    const others = String(event)
      .split(/\r\n?|\n/)
      .filter((line) => line !== "" && !/^data(:|$)/.test(line));
    return complete.push([...others, `data: ${filtered(data, isAllowed)}`, "", ""].join("\n"));
  });
  for await (const piece of body) {
    reader.push(Buffer.from(piece));
    yield* complete;
    complete = [];
  }
}

export default defineFrontend({
  api: 1,
  name: "mcp-relay",
  summary: "Serves an MCP server to the gateway's keys at /mcp/<name>, with tools per key",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["name", "url", "tools"],
    properties: {
      name: {
        type: "string",
        pattern: "^[\\w-]{1,64}$",
        description: "Name in the path /mcp/<name>",
      },
      url: {
        type: "string",
        format: "uri",
        "x-origin": true,
        description: "URL of the MCP server",
      },
      token: {
        type: "string",
        minLength: 1,
        "x-secret": true,
        description: "Bearer token for the MCP server. The client's key is never sent",
      },
      tools: {
        type: "object",
        description:
          "Allowed tools by key ID, by `label:<name>=<value>`, or * for every key. A name can end with *",
        additionalProperties: { type: "array", items: { type: "string", pattern: "^[^*]*\\*?$" } },
      },
    },
  },
  setup({ name: server, url, token, tools }, ctx) {
    /** Signs a session ID together with the key's ID, so no other key can use the session. */
    const signSession = (x: RequestHead, id: string): string => {
      const mac = createHmac("sha256", `${url} ${token}`).update(
        JSON.stringify([x.identity?.id, id]),
      );
      return `${id}.${mac.digest("base64url")}`;
    };
    const verifySession = (x: RequestHead, signed: string): string => {
      const id = signed.slice(0, Math.max(0, signed.lastIndexOf(".")));
      const [expected, actual] = [Buffer.from(signSession(x, id)), Buffer.from(signed)];
      const isValid = expected.length === actual.length && timingSafeEqual(expected, actual);
      return isValid ? id : fail("not_found", "Session not found.");
    };

    async function relay(x: RequestHead, message?: Message): Promise<RouteResponse> {
      const isAllowed = allowed(x, tools);
      if (message?.["method"] === "tools/call") {
        const { name } = (message["params"] ?? {}) as Message;
        // Each call is one request record, with the tool as a label.
        x.addLabel("mcp", `${server}/${String(name)}`.slice(0, 256));
        if (!isAllowed(name)) return rejected(message, "This key may not call this tool.");
      }
      const session = x.headers[SESSION];
      const res = await ctx.fetch(url, {
        method: x.method,
        headers: {
          ...pick(REQUEST_HEADERS, (name) => x.headers[name]),
          ...(typeof session === "string" && { [SESSION]: verifySession(x, session) }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        ...(message && { body: JSON.stringify(message) }),
        signal: x.signal,
      });
      const { status, body } = res;
      // A 401 of the server concerns the operator's token, not the client's key.
      if (status === 401 || status === 403)
        fail("upstream_auth", "The MCP server rejected the gateway's token.");
      const headers = pick(RESPONSE_HEADERS, (name) => res.headers.get(name));
      const started = res.headers.get(SESSION);
      if (started !== null) headers[SESSION] = signSession(x, started);
      const type = headers["content-type"] ?? "";
      if (body && type.startsWith("text/event-stream"))
        return { status, headers, body: events(body, isAllowed) };
      const text = await res.text();
      const isJson = text !== "" && type.includes("json");
      return { status, headers, body: Buffer.from(isJson ? filtered(text, isAllowed) : text) };
    }

    const path = `/mcp/${server}`;
    return {
      routes: [
        { method: "POST", path, body: "json", handle: (x, body) => relay(x, single(body)) },
        { method: "GET", path, handle: (x) => relay(x) },
        { method: "DELETE", path, handle: (x) => relay(x) },
      ],
    };
  },
});

/** Rejects batches, which would bypass the check of tools. MCP has no batches since 2025-06-18. */
const single = (body: unknown): Message =>
  Array.isArray(body)
    ? fail("invalid", "Batches are not supported. Send one message per request.")
    : (body as Message);

/** Returns a JSON-RPC error response to the message. */
const rejected = ({ id }: Message, message: string): RouteResponse => ({
  status: 200,
  body: { jsonrpc: "2.0", id: (id ?? null) as string, error: { code: -32_602, message } },
});
