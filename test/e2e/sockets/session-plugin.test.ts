// A provider of a third party that takes requests over a WebSocket in a format of its own, on the
// public contract alone: its messages, its rejections, and the requests that it leaves to HTTP.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { dial, isTerminal, type SocketClient } from "../../kit/socket-client.ts";
import { SocketUpstream } from "../../kit/sockets/socket-upstream.ts";
import { until } from "../../kit/wait.ts";

const PROVIDER = `
import { defineProvider } from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
const own = responses();
const createSession = () => ({
  continuable: undefined,
  prepareMessage(out) {
    out.set("op", "ask");
    out.remove("stream");
    return out.get("input") !== "over HTTP";
  },
  readMessage(message) {
    const { op, event, status } = JSON.parse(message.toString());
    if (op === "hello") return undefined;
    if (op === "no")
      return { isLast: true, rejection: { status, body: { error: { message: "No.", code: "no" } }, headers: { "retry-after": "7" } } };
    if (op === "elsewhere")
      return { isLast: true, needsNewConnection: true, rejection: { status: 409, body: {}, headers: {} } };
    return { event: "data: " + JSON.stringify(event) + "\\n\\n", isLast: op === "end" };
  },
});
export default defineProvider({ api: 1, name: "toy", summary: "Toy",
  options: { type: "object", properties: { base_url: { type: "string", "x-origin": true, description: "Base" } }, required: ["base_url"], additionalProperties: false },
  credential: { type: "object", properties: { api_key: { type: "string", "x-secret": true, description: "Key" } }, required: ["api_key"], additionalProperties: false },
  setup: ({ base_url }) => ({ endpoints: [{
    protocol: { ...own, client: { ...own.client, createSession } },
    base: base_url,
    auth: async ({ method, url, body }, { api_key }) => ({ "x-signed": [method, url.pathname, body === null, api_key].join(" ") }),
    sockets: { generate: { path: "/ask", headers: { "x-toy": "1" }, subprotocols: ["toy"] } },
  }] }),
});
`;

const eventsOf = (id: string) => {
  const response = { id, object: "response", created_at: 1, model: "m", output: [] };
  const usage = { input_tokens: 5, output_tokens: 2, total_tokens: 7 };
  return [
    {
      type: "response.created",
      sequence_number: 0,
      response: { ...response, status: "in_progress" },
    },
    {
      type: "response.completed",
      sequence_number: 1,
      response: { ...response, status: "completed", usage },
    },
  ];
};

let upstream: SocketUpstream;
let gateway: InProcessGateway;
/** How the provider answers the next requests. */
let answers: string[] = [];
const posts: any[] = [];
beforeAll(async () => {
  upstream = await SocketUpstream.start(
    (socket) => {
      void socket.send({ op: "hello" });
      return async () => {
        const answer = answers.shift();
        if (answer === "elsewhere") return socket.send({ op: "elsewhere" });
        if (answer !== undefined) return socket.send({ op: "no", status: Number(answer) });
        const [first, last] = eventsOf("r1");
        await socket.send({ op: "event", event: first });
        await socket.send({ op: "end", event: last });
      };
    },
    {
      subprotocol: "toy",
      answer: async (req, body) => {
        posts.push({ headers: req.headers, body: JSON.parse(body.toString()) });
        const text = eventsOf("r2").map((event) => `data: ${JSON.stringify(event)}\n\n`);
        return {
          status: 200,
          headers: { "content-type": "text/event-stream" },
          body: text.join(""),
        };
      },
    },
  );
  gateway = await startInProcess({
    yaml: `
frontends: [responses]
middleware: [auth]
store: memory
retries: { total: 1 }
providers:
  toy:
    use: ./provider.js
    with: { base_url: "${upstream.url}/v9", api_key: secret }
    models: { m: { price: { input: 1, output: 10 } } }
`,
    files: { "provider.js": PROVIDER, "package.json": '{"type":"module"}' },
  });
});
afterEach(() => {
  answers = [];
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop();
});

async function turn(client: SocketClient, input: string): Promise<any> {
  client.send({ type: "response.create", model: "toy/m", input });
  return (await client.until(isTerminal)).at(-1);
}
const connected = () => dial(gateway.url, { key: gateway.key });
const states = async () =>
  ((await gateway.ask("ledger.entries", { limit: 100 })) as any).items
    .filter(({ kind }: any) => kind === "settle")
    .map(({ state, usage }: any) => [state, usage.input ?? 0, usage.output ?? 0]);

describe("a provider with a socket format of its own", () => {
  it("gets requests over it, with a handshake that it signs, and they are billed", async () => {
    await using client = await connected();
    const before = (await states()).length;
    expect((await turn(client, "Hi")).type).toBe("response.completed");
    const socket = upstream.sockets.at(-1)!;
    expect(socket.url.pathname).toBe("/v9/ask");
    expect(socket.headers).toMatchObject({
      "x-toy": "1",
      "x-signed": "GET /v9/ask true secret",
      "sec-websocket-protocol": "toy",
    });
    expect(JSON.parse(socket.received[0]!)).toMatchObject({ op: "ask", model: "m", input: "Hi" });
    await until(async () => (await states()).length === before + 1);
    expect(await states()).toContainEqual(["exact", 5, 2]);
  });

  it("rejects a request with a status and headers as over HTTP", async () => {
    await using client = await connected();
    answers = ["429"];
    const { status, error, headers } = await turn(client, "Hi");
    expect(status).toBe(429);
    expect(error.message).toContain("No.");
    expect(headers["retry-after"]).toBe("7");
  });

  it("gets the request once more over a new connection if it asks for one, and then over HTTP", async () => {
    await using client = await connected();
    await turn(client, "Hi");
    const before = upstream.sockets.length;
    answers = ["elsewhere"];
    expect((await turn(client, "Hi")).type).toBe("response.completed");
    expect(upstream.sockets.length).toBe(before + 1);
    answers = ["elsewhere", "elsewhere"];
    const sent = posts.length;
    expect((await turn(client, "Hi")).type).toBe("response.completed");
    expect(upstream.sockets.length).toBe(before + 2);
    expect(posts.length).toBe(sent + 1);
  });

  it("leaves a request to HTTP", async () => {
    await using client = await connected();
    const before = posts.length;
    expect((await turn(client, "over HTTP")).type).toBe("response.completed");
    expect(posts.length).toBe(before + 1);
    expect(posts.at(-1).body).toMatchObject({ input: "over HTTP", stream: true });
    expect(posts.at(-1).body).not.toHaveProperty("op");
  });
});
