// A client's own credential passes through everything: each protocol that takes one, streamed and
// whole, accepted, rejected, quoted in errors, interrupted. Then every output of the gateway, its
// memory, and the requests to all other servers are searched for it.
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "tollgate/plugin";
import { jsonResponse, say, startUpstream, type UpstreamRequest } from "tollgate/testing";
import { startDaemon } from "../../kit/process/daemon.ts";
import type { RigResult } from "../rig.ts";
import { createMemoryReader } from "./canary-memory.ts";
import { spellings } from "./canary.ts";

/** memory: a middleware keeps the credential. The search must find it. */
export const CLIENT_PLANTS = ["", "memory"] as const;

const SCRAPER = "scraper-0123456789-0123456789-01";

/** An isolated plugin that keeps everything it receives. */
const WATCH = `
import { defineMiddleware } from "tollgate/plugin";
const kept = [];
export default defineMiddleware({ api: 1, name: "watch", summary: "Keeps", sends: "nowhere",
  setup: () => ({
    admit(...all) { kept.push(all.slice(1)); },
    route(list, x) { kept.push([list, x.headers]); return list; },
    async attempt(call, next) { const reply = await next(); kept.push([call, reply]); return reply; },
    settle(...all) { kept.push(all); },
  }) });
`;
/** A plugin in the gateway's process that keeps the credential of one request. */
const KEEP = `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({ api: 1, name: "keep", summary: "Keeps", sends: "nowhere",
  setup: () => ({ inspect(request, x) {
    const [, text] = /keep=(\\w+)/.exec(JSON.stringify(request.turns)) ?? [];
    if (text) globalThis.kept = [...text].reverse().join("");
  } }) });
`;

export async function clientCanary(of: {
  seed: number;
  plant: (typeof CLIENT_PLANTS)[number];
}): Promise<RigResult> {
  // The test and the gateway are different processes, so the gateway's memory has only what it got.
  const token = `canary0oat${of.seed}${randomBytes(24).toString("hex")}`;
  await using own = await startUpstream({ "POST /*": answers });
  await using other = await startUpstream({ "POST /*": answers });
  await using collector = await startUpstream({ "POST /*": jsonResponse({}) });
  await using memory = await createMemoryReader();
  const wrong: string[] = [];
  let sinks = 0;
  const look = (where: string, bytes: Buffer | string) => {
    sinks++;
    const text = Buffer.from(bytes);
    if (spellings(token).some((one) => text.includes(one))) wrong.push(where);
  };
  await using gateway = await startDaemon({
    env: memory.env,
    files: { "watch.ts": WATCH, "keep.ts": KEEP },
    yaml: `frontends: [messages, responses, chat-completions, models, usage]
middleware: [auth, limits, usage, { use: ./watch.ts, isolate: child }, ./keep.ts]
observers:
  - { use: metrics, with: { include_keys: true } }
  - { use: access-log, with: { file: access.log } }
  - { use: otlp, with: { endpoint: "${collector.url}", compression: none, include_keys: true } }
admin: { port: 0, tokens: { scraper: { role: metrics, token: "${SCRAPER}" } } }
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
log: { level: debug, slow_request: 1ms }
retries: { per_target: 3, total: 6 }
providers:
  max: { use: anthropic, credential: client, client_accounts: ["*"], trace: forward, with: { base_url: "${own.url}" } }
  codex: { use: openai, credential: client, client_accounts: ["*"], with: { base_url: "${own.url}/v1" } }
  other: { use: anthropic, with: { base_url: "${other.url}", api_key: sk-of-the-operator } }
models:
  both: [max/claude-sonnet-4-6, other/claude-sonnet-4-6]
`,
  });
  const key = gateway.key;
  let requests = 0;
  const ask = async (
    path: string,
    body: object,
    headers: Record<string, string>,
    leaves = false,
  ) => {
    requests++;
    const away = new AbortController();
    let text = "";
    try {
      const sent = fetch(gateway.url + path, {
        method: "POST",
        headers: { "content-type": "application/json", "x-tollgate-key": key, ...headers },
        body: JSON.stringify(body),
        signal: away.signal,
      });
      if (leaves) setTimeout(() => away.abort(), 3);
      const answer = await sent;
      text = JSON.stringify([...answer.headers]);
      for await (const chunk of answer.body!) text += Buffer.from(chunk).toString();
    } catch {
      // Truncated or disconnected: the received part counts.
    }
    look(`response of ${path} ${JSON.stringify(body)}`, text);
  };
  const bearer = { authorization: `Bearer ${token}` };
  const messages = (model: string, text: string, more: object = {}) => ({
    model,
    max_tokens: 9,
    messages: [{ role: "user", content: text }],
    ...more,
  });
  for (const stream of [false, true])
    for (const fate of [
      "none",
      "quote",
      "encoded",
      "overloaded",
      "denied",
      "limited",
      "garbage",
      "page",
      "cut",
      "fail",
    ])
      for (const model of ["max/claude-sonnet-4-6", "both"]) {
        await ask("/v1/messages", messages(model, `fate=${fate}`, { stream }), bearer);
        await ask("/v1/messages", messages(model, `fate=${fate}`, { stream }), {
          "x-api-key": token,
        });
        await ask("/v1/responses", { model: "codex/gpt-5", input: `fate=${fate}`, stream }, bearer);
      }
  await ask("/v1/messages", messages("max/claude-sonnet-4-6", "x", { stream: true }), bearer, true);
  await ask("/v1/messages/count_tokens", messages("max/claude-sonnet-4-6", "x"), bearer);
  // Rejected before anything is sent.
  await ask("/v1/messages", messages("nothing/model", "x"), bearer);
  await ask("/v1/messages", messages("max/claude-sonnet-4-6", "x", { tools: 7 }), bearer);
  await ask("/v1/messages", messages("max/claude-sonnet-4-6", "x"), {
    ...bearer,
    "x-tollgate-key": "tg_wrong",
  });
  await ask("/v1/messages", messages("max/claude-sonnet-4-6", "x"), {
    ...bearer,
    "service-zdr": "required",
  });
  await ask("/v1/chat/completions", messages("codex/gpt-5", "x"), bearer);
  await ask(`/v1/unknown`, {}, bearer);
  if (of.plant === "memory")
    await ask(
      "/v1/messages",
      messages("other/claude-sonnet-4-6", `keep=${[...token].toReversed().join("")}`),
      {},
    );

  for (const command of [
    "status",
    "stats",
    "requests.list",
    "keys.list",
    "config.show",
    "providers.list",
    "ledger.totals",
  ])
    look(`control: ${command}`, JSON.stringify(await gateway.ask(command)));
  const { items } = (await gateway.ask("ledger.entries", { limit: 500 })) as unknown as {
    items: LedgerEntry[];
  };
  if (!items.some(({ state }) => state === "external"))
    wrong.push("no call of the client is in the ledger");
  look("ledger", JSON.stringify(items));
  const { adminUrl } = (await gateway.ask("status")) as { adminUrl: string };
  const scraped = await fetch(`${adminUrl}/metrics`, {
    headers: { authorization: `Bearer ${SCRAPER}` },
  });
  const scrape = await scraped.text();
  if (!scrape.includes("tollgate_calls_total{")) wrong.push("/metrics has counted nothing");
  look("metrics", scrape);
  const searched = await memory.search(gateway.pid, [token]);
  wrong.push(...searched.found);
  await gateway.stop();
  for (const entry of await readdir(gateway.dir, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) look(entry.name, await readFile(join(entry.parentPath, entry.name)));
  look("log", gateway.output());
  for (const signal of ["traces", "metrics", "logs"])
    if (!collector.requests.some(({ path }) => path === `/v1/${signal}`))
      wrong.push(`no ${signal} were sent`);
  for (const [name, server] of Object.entries({ collector, other }))
    for (const { path, rawHeaders, body } of server.requests)
      look(`${name} ${path}`, `${path} ${JSON.stringify(rawHeaders)} ${String(body)}`);
  if (other.requests.length === 0) wrong.push("no other provider was called");
  const calls = own.requests.filter(({ method }) => method === "POST");
  for (const { rawHeaders } of calls)
    if (!JSON.stringify(rawHeaders).includes(token)) wrong.push("a call without the credential");
  return {
    wrong: [...new Set(wrong)],
    counts: { requests, calls: calls.length, sinks, memory: searched.read.length },
    seed: of.seed,
  };
}

/** Answers, or fails as the request's own text orders. Errors quote the credential. */
function answers(asked: UpstreamRequest) {
  const fate = /fate=(\w+)/.exec(String(asked.body))?.[1];
  const { authorization, "x-api-key": apiKey } = asked.headers;
  const quoted = `You sent ${String(authorization ?? apiKey)}`;
  const error = (status: number, type: string) =>
    jsonResponse({ type: "error", error: { type, message: quoted } }, status);
  if (fate === "quote") return error(400, "invalid_request_error");
  if (fate === "encoded")
    return jsonResponse(
      { error: { type: "invalid_request_error", message: Buffer.from(quoted).toString("base64") } },
      400,
    );
  if (fate === "overloaded") return error(529, "overloaded_error");
  if (fate === "denied") return error(401, "authentication_error");
  if (fate === "limited") return error(429, "rate_limit_error");
  if (fate === "garbage")
    return { headers: { "content-type": "application/json" }, body: `{"content": [${quoted}` };
  if (fate === "page") return { headers: { "content-type": "text/html" }, body: `<p>${quoted}` };
  if (asked.path.includes("count_tokens")) return jsonResponse({ input_tokens: 42 });
  const speech = say("Hello").usage({ input: 10, output: 5 });
  if (fate === "fail") return speech.fail(quoted).toResponse(asked);
  const made = speech.toResponse(asked);
  return fate === "cut" ? { ...made, truncation: { after: 150, how: "reset" as const } } : made;
}
