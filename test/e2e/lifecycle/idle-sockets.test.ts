// A connection may be idle for minutes. After its last response, nothing of that request is
// retained, whether by memory or by name, for each protocol, in each mode, and for any end.
import { Agent, request } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { errorResponse, say, type ScriptedReply } from "tollgate/testing";
import { startInProcessWithUpstream, type InProcessWithUpstream } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";
import { WITNESS } from "./live-requests.ts";

const hello = say("Hello, how do you do?").usage({ input: 7, output: 2 });
/** The upstream's end of it, selected by a word in the request. */
const OUTCOMES: { readonly [how: string]: ScriptedReply } = {
  answered: (asked) => hello.toResponse(asked),
  refused: errorResponse(400, "No."),
  busy: errorResponse(503, "No."),
  cut: (asked) => ({
    ...hello.toResponse(asked),
    truncation: { after: { pieces: 2 }, how: "reset" },
  }),
  silent: (asked) => ({
    ...hello.toResponse(asked),
    truncation: { after: "nothing", how: "reset" },
  }),
};
const CLIENTS = {
  "/v1/chat/completions": (content: string) => ({ messages: [{ role: "user", content }] }),
  "/v1/messages": (content: string) => ({
    max_tokens: 50,
    messages: [{ role: "user", content }],
  }),
  "/v1/responses": (input: string) => ({ input }),
} as const;
type Path = keyof typeof CLIENTS;
const UPSTREAMS = ["chat", "messages", "responses"];

let house: InProcessWithUpstream;
beforeAll(async () => {
  house = await startInProcessWithUpstream(
    {
      "POST /*": (asked) => {
        const how = /how-(\w+)/.exec(String(asked.body))?.[1] ?? "answered";
        const reaction = OUTCOMES[how]!;
        return typeof reaction === "function" ? reaction(asked) : reaction;
      },
    },
    (url) => `
frontends: [chat-completions, messages, responses]
middleware: [auth, zdr, limits, usage, ./witness.ts]
retries: { per_target: 1, total: 1 }
store: memory
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, list_models: false } }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/v1", api_key: k } }
  responses: { use: openai, with: { base_url: "${url}/v1", api_key: k }, models: { m: { protocols: [responses] } } }
`,
    { files: { "witness.ts": WITNESS } },
  );
});
afterAll(() => house[Symbol.asyncDispose]());

/** On a connection that stays open. */
function ask(
  agent: Agent,
  path: Path,
  body: object,
  headers: object = {},
): Promise<string | undefined> {
  const { gateway } = house;
  const text = JSON.stringify(body);
  return new Promise((resolve) => {
    const req = request(
      `${gateway.url}${path}`,
      {
        agent,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
          authorization: `Bearer ${gateway.key}`,
          "x-api-key": gateway.key,
          ...headers,
        },
      },
      (res) => {
        res.resume();
        const alive =
          res.headers["x-alive"] && `${res.headers["x-alive"]}: ${res.headers["x-which"]}`;
        res.on("close", () => resolve(alive));
      },
    );
    req.on("error", () => resolve(undefined));
    req.end(text);
  });
}

it("a connection retains nothing of a request after its response", async () => {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 500 });
  const last = new Agent({ keepAlive: true });
  const least = { model: "chat/m", messages: [{ role: "user", content: "Hi" }] };
  await ask(last, "/v1/chat/completions", least, { "x-begin": "1" });
  const asked: Promise<unknown>[] = [];
  const ways = Object.keys(CLIENTS).flatMap((path) =>
    UPSTREAMS.flatMap((up) =>
      Object.keys(OUTCOMES).flatMap((how) =>
        [false, true].map((stream) => ({ path: path as Path, up, how, stream })),
      ),
    ),
  );
  ways.forEach(({ path, up, how, stream }, i) => {
    const body = { model: `${up}/m`, stream, ...CLIENTS[path](`how-${how} ${"x".repeat(20_000)}`) };
    const headers = {
      "x-way": `${path}>${up},${how},${stream}`,
      ...(i % 2 === 0 && { "idempotency-key": `n${i}` }),
    };
    asked.push(ask(agent, path, body, headers));
  });
  await Promise.all(asked);
  // Each on its own connection. These still exist, except for aborted ones.
  expect(Object.values(agent.freeSockets).flat().length).toBeGreaterThan(ways.length / 2);
  let told = "";
  await until(
    async () => {
      told = (await ask(last, "/v1/chat/completions", least, { "x-count": "all" })) ?? "";
      return told.startsWith("0 of");
    },
    () => `no request in memory: ${told}`,
  );
  agent.destroy();
  last.destroy();
});
