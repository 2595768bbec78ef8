import { createHmac, timingSafeEqual } from "node:crypto";
import { defineFrontend, fail, type RequestHead, type RouteResponse } from "tollgate/plugin";
import { parseEventText, createEventSplitter } from "tollgate/protocols/sse";

type Message = { readonly [name: string]: unknown };
type May = (name: unknown) => boolean;

/** What of a client's and a server's headers is the protocol's own. */
const ASKED = ["accept", "content-type", "last-event-id", "mcp-protocol-version"];
const TOLD = ["content-type", "mcp-protocol-version", "retry-after"];
const SESSION = "mcp-session-id";

const only = (names: readonly string[], said: (name: string) => unknown) =>
  Object.fromEntries(
    names.map((name) => [name, said(name)]).filter(([, value]) => typeof value === "string"),
  ) as Record<string, string>;

/** Which tools this client may see and call: those of its key, of its labels, and of everybody. */
function allowed(
  { identity }: RequestHead,
  tools: Readonly<Record<string, readonly string[]>>,
): May {
  const labels = Object.entries(identity?.labels ?? {});
  const whose = [identity?.id ?? "", "*", ...labels.map((pair) => `label:${pair.join("=")}`)];
  const patterns = whose.flatMap((one) => tools[one] ?? []);
  return (name) =>
    patterns.some((one) =>
      one.endsWith("*") ? String(name).startsWith(one.slice(0, -1)) : one === name,
    );
}

/** A list without what the client may not call; any other message as it is. */
function filtered(text: string, may: May): string {
  const message = JSON.parse(text) as Message;
  const result = message["result"] as { tools?: readonly Message[] } | undefined;
  if (!Array.isArray(result?.tools)) return text;
  const tools = (result.tools as readonly Message[]).filter(({ name }) => may(name));
  return JSON.stringify({ ...message, result: { ...result, tools } });
}

/** Whole events alone are passed on, so that a list in one is read whole. */
async function* events(body: ReadableStream<Uint8Array>, may: May) {
  let whole: string[] = [];
  const reader = createEventSplitter((bytes, from, to) => {
    const event = bytes.subarray(from, to);
    const data = parseEventText(event)?.data;
    if (data === undefined) return whole.push(String(event));
    const others = String(event)
      .split(/\r\n?|\n/)
      .filter((line) => line !== "" && !/^data(:|$)/.test(line));
    return whole.push([...others, `data: ${filtered(data, may)}`, "", ""].join("\n"));
  });
  for await (const piece of body) {
    reader.push(Buffer.from(piece));
    yield* whole;
    whole = [];
  }
}

export default defineFrontend({
  api: 1,
  name: "mcp-relay",
  summary: "An MCP server behind the gateway's keys: at /mcp/<name>, with tools by key",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["name", "url", "tools"],
    properties: {
      name: { type: "string", pattern: "^[\\w-]{1,64}$", description: "Its place: /mcp/<name>" },
      url: { type: "string", format: "uri", "x-origin": true, description: "Where it is" },
      token: {
        type: "string",
        minLength: 1,
        "x-secret": true,
        description: "What it is shown in place of the client's key",
      },
      tools: {
        type: "object",
        description:
          "Tools by key id, by `label:<name>=<value>`, or * for every key; a star may stand at a name's end",
        additionalProperties: { type: "array", items: { type: "string", pattern: "^[^*]*\\*?$" } },
      },
    },
  },
  setup({ name: place, url, token, tools }, ctx) {
    /** A session is its key's own: what the client is given names both, and no other key can say it. */
    const seal = (x: RequestHead, id: string): string => {
      const mac = createHmac("sha256", `${url} ${token}`).update(
        JSON.stringify([x.identity?.id, id]),
      );
      return `${id}.${mac.digest("base64url")}`;
    };
    const opened = (x: RequestHead, said: string): string => {
      const id = said.slice(0, Math.max(0, said.lastIndexOf(".")));
      const [mine, theirs] = [Buffer.from(seal(x, id)), Buffer.from(said)];
      const same = mine.length === theirs.length && timingSafeEqual(mine, theirs);
      return same ? id : fail("not_found", "There is no such session.");
    };

    async function relay(x: RequestHead, message?: Message): Promise<RouteResponse> {
      const may = allowed(x, tools);
      if (message?.["method"] === "tools/call") {
        const { name } = (message["params"] ?? {}) as Message;
        // One line of the record for each call: its tool is a label.
        x.addLabel("mcp", `${place}/${String(name)}`.slice(0, 256));
        if (!may(name)) return refused(message, "This key may not call this tool.");
      }
      const session = x.headers[SESSION];
      const answer = await ctx.fetch(url, {
        method: x.method,
        headers: {
          ...only(ASKED, (name) => x.headers[name]),
          ...(typeof session === "string" && { [SESSION]: opened(x, session) }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        ...(message && { body: JSON.stringify(message) }),
        signal: x.signal,
      });
      const { status, body } = answer;
      // Its own 401 is about the operator's token, and is none of the client's.
      if (status === 401 || status === 403)
        fail("upstream_auth", "The MCP server does not take the gateway's token.");
      const headers = only(TOLD, (name) => answer.headers.get(name));
      const begun = answer.headers.get(SESSION);
      if (begun !== null) headers[SESSION] = seal(x, begun);
      const type = headers["content-type"] ?? "";
      if (body && type.startsWith("text/event-stream"))
        return { status, headers, body: events(body, may) };
      const text = await answer.text();
      const json = text !== "" && type.includes("json");
      return { status, headers, body: Buffer.from(json ? filtered(text, may) : text) };
    }

    const path = `/mcp/${place}`;
    return {
      routes: [
        { method: "POST", path, body: "json", handle: (x, body) => relay(x, one(body)) },
        { method: "GET", path, handle: (x) => relay(x) },
        { method: "DELETE", path, handle: (x) => relay(x) },
      ],
    };
  },
});

/** A list of messages would hide calls from what is allowed. The protocol has had none since 2025-06-18. */
const one = (body: unknown): Message =>
  Array.isArray(body) ? fail("invalid", "One message at a time.") : (body as Message);

/** As the protocol has it: an answer to this message, that says what is wrong. */
const refused = ({ id }: Message, message: string): RouteResponse => ({
  status: 200,
  body: { jsonrpc: "2.0", id: (id ?? null) as string, error: { code: -32_602, message } },
});
