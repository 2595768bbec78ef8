import { createHmac, timingSafeEqual } from "node:crypto";
import { defineFrontend, fail, type Arrival, type ServedAnswer } from "tollgate/plugin";

interface Server {
  readonly url: string;
  readonly token?: string | undefined;
  /** Patterns with one star, by key id, by `label:<name>=<value>`, or "*" for every key. None fits: no tool. */
  readonly tools: Readonly<Record<string, readonly string[]>>;
}
type Message = { readonly [name: string]: unknown };

/** What of a client's and a server's headers is the protocol's own. */
const ASKED = ["accept", "content-type", "last-event-id", "mcp-protocol-version"];
const TOLD = ["content-type", "mcp-protocol-version", "retry-after"];
const SESSION = "mcp-session-id";

const fits = (pattern: string, name: string): boolean => {
  const [before = "", after] = pattern.split("*", 2);
  return after === undefined
    ? pattern === name
    : name.length >= pattern.length - 1 && name.startsWith(before) && name.endsWith(after);
};

/** Which tools of a server this client may see and call. */
function allowed({ identity }: Arrival, { tools }: Server): (name: unknown) => boolean {
  const labels = Object.entries(identity?.labels ?? {}).map(
    ([name, value]) => `label:${name}=${value}`,
  );
  const patterns = [identity?.id ?? "", ...labels, "*"].flatMap((who) => tools[who] ?? []);
  return (name) => typeof name === "string" && patterns.some((pattern) => fits(pattern, name));
}

/** A list without what the client may not call; any other message as it is. */
function filtered(message: Message, may: (name: unknown) => boolean): Message {
  const { tools } = (message["result"] ?? {}) as { tools?: readonly Message[] };
  if (!Array.isArray(tools)) return message;
  const left = (tools as Message[]).filter(({ name }) => may(name));
  return { ...message, result: { ...(message["result"] as object), tools: left } };
}

/** Events with the same words: whole ones alone are passed on, so that a list in one is read whole. */
async function* events(
  body: ReadableStream<Uint8Array>,
  change: (text: string) => string,
): AsyncGenerator<string> {
  const text = new TextDecoder();
  let held = "";
  for await (const piece of body) {
    held += text.decode(piece, { stream: true });
    if (held.length > MOST) fail("upstream", "An event of the MCP server is too long.");
    const ends = held.split(/(?<=\r?\n\r?\n)/);
    held = /\n\r?\n$/.test(ends.at(-1)!) ? "" : ends.pop()!;
    for (const one of ends)
      yield one.replace(
        /^data:(.*(?:\r?\ndata:.*)*)$/m,
        (_all, data: string) => `data: ${change(data.replaceAll(/\r?\ndata:/g, "\n"))}`,
      );
  }
}
const MOST = 16 * 1024 * 1024;

export default defineFrontend({
  api: 1,
  name: "mcp-relay",
  summary: "MCP servers behind the gateway's keys: at /mcp/<server>, with tools by key",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["servers"],
    properties: {
      servers: {
        type: "object",
        minProperties: 1,
        description: "By the name in the path",
        additionalProperties: {
          type: "object",
          additionalProperties: false,
          required: ["url", "tools"],
          properties: {
            url: {
              type: "string",
              format: "uri",
              "x-origin": true,
              description: "Its streamable HTTP address",
            },
            token: {
              type: "string",
              minLength: 1,
              "x-secret": true,
              description: "What it is shown in place of the client's key",
            },
            tools: {
              type: "object",
              description:
                "Tools by key id, by `label:<name>=<value>`, or * for every key; a pattern has one star",
              additionalProperties: { type: "array", items: { type: "string", minLength: 1 } },
            },
          },
        },
      },
    },
  },
  setup({ servers }, ctx) {
    const named = new Map(Object.entries(servers as Readonly<Record<string, Server>>));

    /** A session is its key's own: what the client is given names both, and no other key can say it. */
    const seal = (x: Arrival, { url, token = "" }: Server, id: string): string => {
      const mac = createHmac("sha256", `${url} ${token}`).update(`${x.identity?.id} ${id}`);
      return `${id}.${mac.digest("base64url")}`;
    };
    const opened = (x: Arrival, server: Server): string | undefined => {
      const said = x.headers[SESSION];
      if (typeof said !== "string") return undefined;
      const id = said.slice(0, Math.max(0, said.lastIndexOf(".")));
      const [mine, theirs] = [Buffer.from(seal(x, server, id)), Buffer.from(said)];
      const same = mine.length === theirs.length && timingSafeEqual(mine, theirs);
      return same ? id : fail("not_found", "There is no such session.");
    };

    async function relay(x: Arrival, message?: Message): Promise<ServedAnswer> {
      const server =
        named.get(x.params["server"] ?? "") ?? fail("not_found", "There is no such MCP server.");
      const may = allowed(x, server);
      const method = message?.["method"];
      if (method === "tools/call") {
        const { name } = (message!["params"] ?? {}) as Message;
        // One line of the record for each call: its tool is a label.
        x.label("mcp", `${x.params["server"]}/${String(name)}`.slice(0, 256));
        if (!may(name)) return refused(message!, "This key may not call this tool.");
      }
      const session = opened(x, server);
      const pass = ASKED.flatMap((name) =>
        typeof x.headers[name] === "string" ? [[name, x.headers[name]]] : [],
      );
      const answer = await ctx.fetch(server.url, {
        method: x.method,
        headers: {
          ...Object.fromEntries(pass),
          ...(session !== undefined && { [SESSION]: session }),
          ...(server.token !== undefined && { authorization: `Bearer ${server.token}` }),
        },
        ...(message && { body: JSON.stringify(message) }),
        signal: x.signal,
      });
      const headers: Record<string, string> = {};
      for (const name of TOLD)
        if (answer.headers.has(name)) headers[name] = answer.headers.get(name)!;
      const begun = answer.headers.get(SESSION);
      if (begun !== null) headers[SESSION] = seal(x, server, begun);
      // Its own 401 is about the operator's token, and is none of the client's.
      if (answer.status === 401 || answer.status === 403)
        fail("upstream_auth", "The MCP server does not take the gateway's token.");
      const change = (text: string) => {
        // An event may have an id alone.
        if (text.trim() === "") return text;
        const read = JSON.parse(text) as Message;
        return JSON.stringify(filtered(read, may));
      };
      const streams = headers["content-type"]?.startsWith("text/event-stream") && answer.body;
      if (streams) return { status: answer.status, headers, body: events(answer.body!, change) };
      const text = await answer.text();
      const json = text !== "" && headers["content-type"]?.includes("json");
      return { status: answer.status, headers, body: Buffer.from(json ? change(text) : text) };
    }

    const path = "/mcp/:server";
    return {
      routes: [
        { method: "POST", path, body: "json", serve: (x, body) => relay(x, one(body)) },
        { method: "GET", path, serve: (x) => relay(x) },
        { method: "DELETE", path, serve: (x) => relay(x) },
      ],
    };
  },
});

/** A list of messages would hide calls from what is allowed. The protocol has had none since 2025-06-18. */
const one = (body: unknown): Message =>
  Array.isArray(body) ? fail("invalid", "One message at a time.") : (body as Message);

/** As the protocol has it: an answer to this message, that says what is wrong. */
const refused = ({ id }: Message, message: string): ServedAnswer => ({
  status: 200,
  body: { jsonrpc: "2.0", id: (id ?? null) as string, error: { code: -32_602, message } },
});
