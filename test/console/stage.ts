// A gateway with its console and traffic of every type: for screenshots, and as the start of
// journeys.
import { formatLimit } from "../../src/plugin/store/limit.ts";
import { writePast } from "./past.ts";
import type { BrowserContext } from "playwright-core";
import { startDaemon, type Daemon } from "../kit/process/daemon.ts";
import { startRealtimeUpstream, type RealtimeUpstream } from "../kit/sockets/realtime-upstream.ts";
import { openSocket, type SocketClient } from "../kit/sockets/socket-client.ts";

export interface Stage extends AsyncDisposable {
  readonly gateway: Daemon;
  /** Keys that may send requests. */
  readonly secrets: readonly string[];
  /** URL of the console. */
  readonly console: string;
  /** The provider of `voice/gpt-realtime`. */
  readonly upstream: RealtimeUpstream;
  /** Signs a browser in. */
  enter(browser: BrowserContext): Promise<void>;
  /** One request with a key, the first by default. Resolves when it has ended. */
  chat(model: string, words: string, secret?: string): Promise<unknown>;
  /** A number of requests of several types, including failed ones. */
  play(rounds: number): Promise<void>;
  /** Opens a connection for each key, and holds one conversation. */
  connect(): Promise<readonly SocketClient[]>;
}

/** Prices of a few tenths of a cent, so that charts have content. */
const PRICES = ["echo", "think", "lorem", "slow", "tools", "fail"]
  .map((name, i) => `      ${name}: { price: { input: "${2 + i}", output: "${8 + 3 * i}" } }`)
  .join("\n");

/** A date in about two weeks, so that "Needs attention" has content. */
const SOON = new Date(Date.now() + 16 * 86_400_000).toISOString().slice(0, 10);

const yamlOf = (upstream: string): string => `
admin: { port: 0 }
frontends: [chat-completions, messages, responses, gemini, completions, images, embeddings, rerank, moderations, speech, transcriptions, realtime, models, usage, jobs, { use: mcp, with: { servers: { billing: { url: "${upstream}/billing", prices: { "*": "0.002" }, openapi: { document: ./billing.yaml } } } } }]
middleware: [auth, zdr, limits, usage]
observers: [console, { use: reconcile, with: { bills: { acme: { from: azure, files: [./bill.csv] } } } }]
providers:
  demo: { use: demo, with: { pace_ms: 5 } }
  acme:
    use: demo
    models:
${PRICES.replace("slow: { ", `slow: { retires: ${SOON}, `)}
  voice:
    use: openai
    with: { base_url: "${upstream}/v1", api_key: sk-voice }
    models:
      gpt-realtime: { operation: realtime, price: { input: "4", output: "16", audio_in: "32", audio_out: "64" } }
  spare:
    when: "\${env:TOLLGATE_SPARE_KEY:-}"
    use: openai
    with: { api_key: "\${env:TOLLGATE_SPARE_KEY:-}" }
models:
  fast: [acme/echo, demo/echo]
accounts:
  house:
    name: The whole house
    limits: [usd=40/month]
scopes:
  team: { from: ["label:team"], within: gateway, limits: [usd=5/day, requests=20/day], overflow: warn }
  thinking: { models: [acme/think], limits: [usd=2/day], overflow: { downgrade: fast } }
`;

/** An API whose operations are tools. */
const BILLING = `openapi: 3.1.0
info: { title: Billing, version: "1" }
paths:
  /invoices:
    get: { operationId: listInvoices, summary: List the invoices of a customer }
    post: { operationId: createInvoice, summary: Create an invoice }
  /invoices/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
    get: { operationId: getInvoice, summary: Show an invoice }
`;

const NAMES = [
  ["laptop", "web"],
  ["nightly batch", "data"],
  ["support bot", "web"],
] as const;

/** Two teams under the account of gateway.yaml, and a key of each type. */
async function makeKeys(ask: Daemon["ask"]) {
  const budget = (usd: number) => [formatLimit({ unit: "nano_usd", max: usd * 1e9, per: "day" })];
  const parent = "house";
  await ask("accounts.create", { id: "web", name: "Web", parent, limits: budget(0.2) });
  await ask("accounts.create", { id: "data", name: "Data", parent, limits: budget(2) });
  const made: { secret: string; id: string; team: string }[] = [];
  for (const [name, team] of NAMES) {
    const limits = name === "laptop" ? ["requests=60/day"] : [];
    const { secret, key } = (await ask("keys.create", {
      name,
      labels: { team },
      account: team,
      limits,
    })) as { secret: string; key: { id: string } };
    made.push({ secret, id: key.id, team });
  }
  return made;
}

export async function openStage(): Promise<Stage> {
  const upstream = await startRealtimeUpstream({ models: ["gpt-realtime"] });
  const yaml = yamlOf(upstream.url);
  const before = await startDaemon({ yaml, files: { "billing.yaml": BILLING } });
  const made = await makeKeys(before.ask);
  await before.stop();
  await writePast(before.stateDir, made, Date.now());
  const gateway = await startDaemon({ yaml, dir: before.dir });
  const evals = (await gateway.ask("keys.create", {
    name: "evals",
    labels: { team: "data" },
    limits: ["requests=5/day"],
  })) as { secret: string };
  for (let i = 0; i < 4; i++)
    await ask(gateway.url, evals.secret, { model: "acme/echo", messages: said("Hello") });
  const { adminUrl: admin } = (await gateway.ask("status")) as { adminUrl: string };
  const secrets = [before.key, ...made.map(({ secret }) => secret)];
  return {
    gateway,
    secrets,
    console: `${admin}/console`,
    upstream,
    async enter(browser) {
      const { url } = (await gateway.ask("console")) as { url: string };
      const page = await browser.newPage();
      await page.goto(url);
      await page.locator("main.page").waitFor();
      await page.close();
    },
    chat: (model, words, secret = before.key) =>
      ask(gateway.url, secret, { model, messages: said(words) }),
    play: (rounds) => play(gateway.url, secrets, rounds),
    connect: () => connect(gateway.url, secrets),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await upstream.stop();
    },
  };
}

const WORDS =
  "Tell me of the gate, the toll and the road behind it, and what a traveller pays at night";

const said = (text: string) => [{ role: "user", content: text }];

const ask = (url: string, secret: string, body: object, path = "/v1/chat/completions") =>
  fetch(`${url}${path}`, {
    method: "POST",
    headers: {
      ...(path === "/v1/messages"
        ? { "x-api-key": secret }
        : { authorization: `Bearer ${secret}` }),
      "content-type": "application/json",
    },
    body: JSON.stringify(body),
  }).then((answer) => answer.arrayBuffer());

async function connect(url: string, keys: readonly string[]): Promise<readonly SocketClient[]> {
  const [first, ...others] = keys;
  const path = "/v1/realtime?model=voice/gpt-realtime";
  const talks = await openSocket(`${url}${path}`, { key: first! });
  talks.send({ type: "response.create" });
  await talks.wait("response.done");
  const waiting = others.map((key) => openSocket(`${url}/v1/responses`, { key }));
  return [talks, ...(await Promise.all(waiting))];
}

const MCP_REVISION = "2026-07-28";

/** One call of a tool. */
const callTool = (url: string, secret: string, name: string, id: number) =>
  fetch(`${url}/mcp/billing`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": MCP_REVISION,
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: {
        name,
        arguments: {},
        _meta: {
          "io.modelcontextprotocol/protocolVersion": MCP_REVISION,
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
  }).then((response) => response.text());

async function play(url: string, keys: readonly string[], rounds: number): Promise<void> {
  const chat = (secret: string, body: object, path?: string) => ask(url, secret, body, path);
  for (let i = 0; i < rounds; i++) {
    const secret = keys[i % keys.length]!;
    await Promise.all([
      chat(secret, {
        model: "acme/echo",
        messages: said(WORDS.repeat(1 + (i % 5))),
        stream: i % 2 === 0,
      }),
      chat(secret, { model: "acme/lorem", messages: said(`${20 + i} words`) }),
      chat(secret, { model: "fast", messages: said(WORDS) }),
      chat(
        secret,
        { model: "acme/think", max_tokens: 200, messages: said("Why is there a toll?") },
        "/v1/messages",
      ),
      ...(i % 4 === 0 ? [chat(secret, { model: "acme/fail", messages: said("invalid") })] : []),
      ...(i % 3 === 0 ? [callTool(url, secret, "listInvoices", i)] : []),
      ...(i % 9 === 0 ? [chat("tg_wrong", { model: "demo/echo", messages: said("Hello") })] : []),
      ...(i % 6 === 0 ? [chat(secret, { model: "demo/slow", messages: said(WORDS) })] : []),
    ]);
  }
}
