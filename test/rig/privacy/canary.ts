// Unique words pass through everything: each protocol, each mode, responses, errors, truncations,
// rejections, commands. Then all output is searched for them, in plain text, base64, and URL
// encoding.
//
// Exceptions, listed by name: `first-key`, which contains the first key, and `files/`, images that
// a client requested by URL. A client's own `x-request-id` is kept for lookups, so it contains no
// such word.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import type { LedgerEntry } from "tollgate/plugin";
import {
  jsonResponse,
  say,
  protocolAtPath,
  startUpstream,
  type TestUpstream,
  type UpstreamRequest,
  type ScriptedResponse,
} from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { FRONTENDS, isGemini, spoken } from "../money/billing-upstream.ts";
import { PNG } from "../money/vendor-formats.ts";
import { readConsole } from "./canary-console.ts";
import type { Rig, RigResult } from "../rig.ts";
import {
  completedAs,
  ENTRY_POINTS,
  headersOf,
  pathOf,
  PROTOCOLS,
  providersOf,
  encodeBody,
  type EntryPoint,
} from "./zdr-upstreams.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");
const EXCEPTIONS = [/(^|\/)first-key$/, /(^|\/)files\//];

/** leak: a middleware that logs content. The search must find it. */
export const PLANTS = ["", "leak"] as const;

interface Words {
  readonly prompt: string;
  readonly answer: string;
  readonly user: string;
  readonly provider: string;
  readonly header: string;
  /** The signing secret of alerts. */
  readonly hook: string;
}

/** With characters that every encoding changes. */
const wordsOf = (seed: number): Words => ({
  prompt: `cänary/prompt+${seed}?worth=keeping`,
  answer: `cänary/answer+${seed}?worth=keeping`,
  user: `canary-user-${seed}@example.com`,
  provider: `sk-canary-provider-${seed}-0123456789abcdef`,
  header: `canary-header-${seed}-0123456789`,
  hook: `whsec_${Buffer.from(`canary-hook-${seed}-0123456789-0123456789`).toString("base64")}`,
});

/** Every encoding of a word. Base64 at each of its three offsets. */
export function spellings(word: string): string[] {
  const bytes = Buffer.from(word);
  const inner = [0, 1, 2].flatMap((shift) => {
    const padded = Buffer.concat([Buffer.alloc(shift), bytes]);
    // Within three bytes of its start and end, neighboring bytes affect the encoding.
    const from = shift === 0 ? 0 : 4;
    const to = Math.floor(padded.length / 3) * 4;
    return [
      padded.toString("base64").slice(from, to),
      padded.toString("base64url").slice(from, to),
    ];
  });
  const json = JSON.stringify(word).slice(1, -1);
  const ascii = json.replace(
    /[^\x20-\x7e]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return [
    ...new Set([
      word,
      json,
      ascii,
      encodeURIComponent(word),
      encodeURI(word),
      bytes.toString("hex"),
      bytes.toString("latin1"),
      ...inner,
    ]),
  ];
}

const found = (where: string, bytes: Buffer, words: Readonly<Record<string, string>>): string[] =>
  Object.entries(words).flatMap(([name, word]) =>
    spellings(word).some((one) => bytes.includes(one)) ||
    bytes.includes(Buffer.from(word, "utf16le"))
      ? [`${where}: ${name}`]
      : [],
  );

/**
 * Returns the word, quotes the request, fails, or disconnects, as the request's own text orders.
 */
const answers =
  (words: Words) =>
  (asked: UpstreamRequest): ScriptedResponse => {
    const text = asked.body.toString();
    const fate = /fate=(\w+)/.exec(text)?.[1];
    const quoted = `${text} ${String(asked.headers.authorization ?? asked.headers["x-api-key"])}`;
    if (fate === "quote")
      return jsonResponse({ error: { type: "invalid_request_error", message: quoted } }, 400);
    if (fate === "overloaded") return jsonResponse({ error: { message: quoted } }, 503);
    if (fate === "denied") return jsonResponse({ error: { message: quoted } }, 401);
    if (fate === "garbage")
      return { headers: { "content-type": "application/json" }, body: `{"choices": [${quoted}` };
    if (fate === "page") return { headers: { "content-type": "text/html" }, body: `<p>${quoted}` };
    if (/\/images\/(generations|edits)$/.test(asked.path))
      return jsonResponse({ created: 1, data: [{ b64_json: PNG, revised_prompt: words.answer }] });
    if (asked.path.endsWith("/rerank"))
      return jsonResponse({
        results: [{ index: 0, relevance_score: 0.5, document: words.answer }],
      });
    if (asked.path.endsWith("/moderations"))
      return jsonResponse({
        id: "m1",
        results: [{ flagged: true, categories: { [words.answer]: true } }],
      });
    if (asked.path.endsWith("/completions") && !asked.path.includes("/chat/"))
      return completedAs(words.answer);
    if (isGemini(asked)) {
      const speech = say(words.answer).usage({ input: 10, output: 5 });
      const made = spoken(fate === "fail" ? speech.fail(quoted) : speech, asked);
      return fate === "cut" ? { ...made, truncation: { after: 150, how: "reset" } } : made;
    }
    if (asked.path.endsWith("/embeddings"))
      return jsonResponse({ data: [{ index: 0, embedding: [1] }], said: words.answer });
    if (asked.path.endsWith("/audio/speech"))
      return {
        headers: { "content-type": "audio/mpeg" },
        body: ["sound: ", words.answer],
        framing: "chunked",
        ...(fate === "cut" && { truncation: { after: 3, how: "reset" } }),
      };
    if (asked.path.includes("/audio/"))
      return jsonResponse({ text: words.answer, said: text.length });
    if (!protocolAtPath(asked.path)) return jsonResponse({ input_tokens: 42 });
    const speech = say(words.answer).usage({ input: 10, output: 5 });
    if (fate === "fail") return speech.fail(quoted).toResponse(asked);
    const made = speech.toResponse(asked);
    return fate === "cut" ? { ...made, truncation: { after: 150, how: "reset" } } : made;
  };

/** Where the same request is repeated. */
const CACHED = ["chat", "messages", "responses"] as const;

/** A common cache of responses. */
const CACHE = new URL(
  "../../../examples/packages/middleware-exact-cache/src/index.ts",
  import.meta.url,
).pathname;

/** Source of the secrets in gateway.yaml. */
const environment = ({ provider, hook }: Words) => ({ CANARY_KEY: provider, CANARY_HOOK: hook });

/** An admin token, which is in gateway.yaml and therefore no canary. */
const SCRAPER = "scraper-0123456789-0123456789-01";

const FATES = ["none", "quote", "overloaded", "denied", "garbage", "page", "fail", "cut", "leave"];

const LEAK = `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({ api: 1, name: "leak", summary: "Logs", sends: "nowhere",
  setup: (_o, ctx) => ({ prepare(out) { ctx.log.info({ seen: Buffer.from(JSON.stringify(out.get("messages") ?? "")).toString("base64") }, "seen"); } }) });
`;

export async function canary(of: {
  seed: number;
  plant: string;
  say: (line: string) => void;
}): Promise<RigResult> {
  const words = wordsOf(of.seed);
  await using up = await startUpstream({
    "POST /*": answers(words),
    "GET /*": jsonResponse({ object: "list", data: [{ id: "model", object: "model" }] }),
  });
  await using collector = await startUpstream({ "POST /*": jsonResponse({}) });
  const dir = await mkdtemp(join(tmpdir(), "tollgate-canary-"));
  const leak = of.plant === "leak" ? ", { use: ./leak.ts }" : "";
  const yaml = `frontends: ${FRONTENDS.replace("]", ", models, usage]")}
middleware: [auth, zdr, limits, { use: usage, with: { label_headers: [x-team] } }, { use: "${CACHE}" }${leak}]
observers:
  - { use: metrics, with: { include_keys: true, labels: [x-team] } }
  - { use: access-log, with: { file: access.log } }
  - { use: otlp, with: { endpoint: "${collector.url}", compression: none, include_keys: true, include_labels: true } }
  - { use: alerts, with: { digest: day, receivers: { ops: { url: "${collector.url}/alerts", secret: "\${env:CANARY_HOOK}" } } } }
  - console
admin: { port: 0, tokens: { scraper: { role: metrics, token: "${SCRAPER}" } } }
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
log: { level: debug, slow_request: 1ms }
${providersOf({ keeps: up, clean: up } as never, '"${env:CANARY_KEY}"').replaceAll("use: ", "trace: forward, use: ")}models:
  over: { candidates: [clean-messages/model, clean-chat/model, keeps-responses/model] }
`;
  const wrong: string[] = [];
  let sinks = 0;
  let requests = 0;
  let hits = 0;
  let gateway: Daemon | undefined;
  try {
    gateway = await startDaemon({
      yaml,
      dir,
      env: environment(words),
      ...(leak && { files: { "leak.ts": LEAK } }),
    });
    const made = (await gateway.ask("keys.create", { name: "made" })) as { secret: string };
    const keys = [gateway.key, made.secret];
    const secrets: Record<string, string> = {
      ...words,
      "the first key": gateway.key,
      "a made key": made.secret,
    };
    const look = (where: string, bytes: Buffer | string) => {
      sinks++;
      wrong.push(...found(where, Buffer.from(bytes), secrets));
    };
    for (const one of scenarios(words, keys)) {
      requests++;
      const told = await ask(gateway.url, one);
      if (told.includes('["x-tollgate-cache","hit')) {
        hits++;
        if ("service-zdr" in one.headers)
          wrong.push(`a kept answer under Service-ZDR: ${one.path}`);
      }
      // A response may contain everything for its own client, except for secrets of others.
      wrong.push(
        ...found(`told: ${one.path}`, Buffer.from(told), {
          provider: words.provider,
          hook: words.hook,
        }),
      );
    }
    if (hits < CACHED.length) wrong.push(`${hits} answers came of the cache`);
    of.say(`${requests} requests, ${up.requests.length} calls`);
    let attempt = "";
    for (let after: string | undefined, more = true; more;) {
      const page = (await gateway.ask("ledger.entries", {
        limit: 500,
        ...(after !== undefined && { after }),
      })) as unknown as { items: LedgerEntry[]; next?: string };
      look("ledger page", JSON.stringify(page.items));
      attempt ||= page.items[0]?.attempt ?? "";
      after = page.next;
      more = after !== undefined;
    }
    for (const command of [
      "status",
      "models.list",
      "keys.list",
      "ledger.totals",
      "ledger.verify",
      "config.show",
      "providers.list",
    ])
      look(`control: ${command}`, JSON.stringify(await gateway.ask(command)));
    const { items } = (await gateway.ask("requests.list", { limit: 500 })) as {
      items: readonly { id: string }[];
    };
    if (items.length === 0) wrong.push("no request is remembered");
    // A request is found by its client's own ID. No other header is kept.
    const butItsId = (name: string, value: unknown) =>
      name === "clientRequestId" ? undefined : value;
    look("control: requests.list", JSON.stringify(items, butItsId));
    for (const { id } of items.slice(0, 50)) {
      const found = await gateway.ask("requests.show", { id });
      look("control: requests.show", JSON.stringify(found, butItsId));
    }
    await readConsole(
      gateway,
      { ids: items.slice(0, 50).map(({ id }) => id), attempt, prompt: words.prompt },
      {
        look,
        secret: (name, word) => (secrets[name] = word),
        wrong: (line) => wrong.push(line),
      },
    );
    const usage = await fetch(`${gateway.url}/v1/usage`, {
      headers: headersOf("chat", made.secret),
    });
    look("GET /v1/usage", await usage.text());
    const { adminUrl: admin } = (await gateway.ask("status")) as { adminUrl: string };
    for (const accept of ["text/plain", "application/openmetrics-text"]) {
      const headers = { authorization: `Bearer ${SCRAPER}`, accept };
      const scrape = await (await fetch(`${admin}/metrics`, { headers })).text();
      if (!scrape.includes("tollgate_calls_total{")) wrong.push("/metrics has counted nothing");
      look(`GET /metrics as ${accept}`, scrape);
    }
    for (const argv of [
      ["status"],
      ["providers"],
      ["config", "show"],
      ["models"],
      ["usage"],
      ["print"],
      ["check"],
      ["explain", "over"],
      ["policy", "explain", "over", "--zdr"],
      ["keys", "list"],
      ["audit"],
      ["ledger", "verify"],
      ["tail", "--once"],
      ["top", "--once", "--window", "1h"],
    ]) {
      const { stdout, stderr } = await cli(dir, argv, environment(words));
      look(`tollgate ${argv.join(" ")}`, stdout + stderr);
    }
    // Some output is written only at the end.
    await files(dir, "running", look);
    await gateway.stop();
    await files(dir, "stopped", look);
    look("what the daemon wrote", gateway.output());
    wrong.push(...traced(up, collector, look));
    return {
      wrong: [...new Set(wrong)],
      counts: {
        requests,
        hits,
        calls: up.requests.length,
        sinks,
        spellings: spellings(words.prompt).length,
      },
      seed: of.seed,
    };
  } finally {
    gateway?.kill("SIGKILL");
    await gateway?.exit;
    await rm(dir, { recursive: true, force: true });
  }
}

/**
 * Trace data at collectors and providers: a client's baggage is never forwarded, and its trace
 * continues only for requests that are not private.
 */
function traced(
  up: TestUpstream,
  collector: TestUpstream,
  look: (where: string, bytes: Buffer) => void,
): string[] {
  const wrong: string[] = [];
  const posts = collector.requests;
  for (const signal of ["traces", "metrics", "logs"])
    if (!posts.some(({ path }) => path === `/v1/${signal}`)) wrong.push(`no ${signal} were sent`);
  if (!posts.some(({ path }) => path === "/alerts")) wrong.push("no alert was sent");
  look("what the collector got", Buffer.concat(posts.map(({ body }) => body)));
  let handed = 0;
  for (const { headers, path } of up.requests) {
    if (headers["traceparent"] !== undefined) handed++;
    if (headers["baggage"] !== undefined) wrong.push(`baggage: ${path}`);
    if (headers["tracestate"]?.includes("private")) wrong.push(`a private trace: ${path}`);
  }
  if (handed === 0) wrong.push("no trace was handed on");
  return wrong;
}

interface Scenario {
  readonly path: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | FormData | undefined;
  readonly leaves: boolean;
}

function* scenarios(words: Words, [key = "", other = ""]: readonly string[]): Generator<Scenario> {
  const one = (
    door: EntryPoint,
    body: object | string,
    more: Partial<Scenario> = {},
    headers: object = {},
  ): Scenario => ({
    path: typeof body === "string" ? ENTRY_POINTS[door].path : pathOf(door, body),
    method: "POST",
    headers: {
      ...headersOf(door, other),
      "user-agent": words.header,
      "x-request-id": "a-client-s-own-id",
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      baggage: words.header,
      ...headers,
    },
    body: typeof body === "string" ? body : encodeBody(door, body),
    leaves: false,
    ...more,
  });
  // Before any failure: a provider in cooldown returns nothing that a cache could store.
  for (const door of CACHED)
    for (const zdr of [{}, { "service-zdr": "required" }])
      for (let turn = 0; turn < 2; turn++)
        yield one(door, ENTRY_POINTS[door].body("clean-chat/model", words.prompt, true), {}, zdr);
  for (const door of PROTOCOLS)
    for (const to of PROTOCOLS)
      // Gemini adds its own stream format. Non-streaming responses use the same path.
      for (const stream of door === "gemini" || to === "gemini" ? [true] : [false, true])
        for (const fate of FATES)
          for (const zdr of [undefined, "required"]) {
            const body = ENTRY_POINTS[door].body(
              `clean-${to}/model`,
              `${words.prompt} fate=${fate}`,
              stream,
            );
            const named =
              door === "gemini"
                ? { labels: { user: words.user } }
                : door === "messages"
                  ? { metadata: { user_id: words.user } }
                  : { user: words.user };
            const headers =
              zdr === undefined
                ? { tracestate: "rojo=1" }
                : { "service-zdr": zdr, tracestate: `private=${words.header}` };
            yield one(door, { ...body, ...named }, { leaves: fate === "leave" }, headers);
          }
  for (const door of CACHED) {
    const body = ENTRY_POINTS[door].body("over", words.prompt, true);
    yield one(door, body, {}, headersOf(door, key));
    yield one(door, { ...body, model: "keeps-chat/model" }, {}, { "service-zdr": "strict" });
    yield one(door, { ...body, model: "nobody/model" });
    yield one(door, { ...body, store: true, container: "c" }, {}, { "service-zdr": "required" });
    yield one(door, { ...body, temperature: words.prompt });
    yield one(door, `{"model": "clean-chat/model", "messages": "${words.prompt}`);
    yield one(door, `{"${words.prompt}": 1, "${words.prompt}": 2}`);
    yield one(door, body, {}, { "service-zdr": words.header });
    yield one(door, body, {}, headersOf(door, `tg_${words.header}`));
    yield one(door, body, {}, { "x-tollgate-strict": "true" });
    yield one(door, { ...body, unknown_field: words.prompt });
    yield one(door, body, { path: `/v1/${encodeURIComponent(words.prompt)}` });
  }
  const input = [
    { role: "user", content: words.prompt },
    { type: "item_reference", id: "msg_1" },
  ];
  yield one("responses", { model: "clean-chat/model", input });
  yield one("responses", {
    model: "clean-responses/model",
    input: words.prompt,
    previous_response_id: "r",
  });
  const count = {
    model: "clean-messages/model",
    messages: [{ role: "user", content: words.prompt }],
  };
  yield one("messages", count, { path: "/v1/messages/count_tokens" });
  for (const zdr of [undefined, "required"])
    for (const fate of ["none", "quote", "overloaded", "garbage"])
      for (const model of ["clean-embeddings/vectors", "keeps-embeddings/vectors", "demo/embed"])
        yield one(
          "embeddings",
          ENTRY_POINTS.embeddings.body(model, `${words.prompt} fate=${fate}`, false),
          {},
          zdr === undefined ? {} : { "service-zdr": zdr },
        );
  for (const zdr of [undefined, "required"])
    for (const fate of ["none", "quote", "overloaded", "garbage", "page", "cut"])
      for (const [door, model] of [
        ["speech", "clean-speech/voice"],
        ["speech", "demo/speech"],
        ["transcriptions", "clean-transcriptions/ear"],
        ["transcriptions", "keeps-transcriptions/ear"],
        ["transcriptions", "demo/transcribe"],
        ["edits", "clean-images/draw"],
        ["edits", "keeps-images/draw"],
        ["rerank", "clean-rerank/rank"],
        ["rerank", "demo/rerank"],
        ["moderations", "clean-moderations/judge"],
        ["moderations", "demo/moderate"],
        ["completions", "clean-completions/base"],
        ["completions", "demo/complete"],
      ] as const)
        yield one(
          door,
          ENTRY_POINTS[door].body(model, `${words.prompt} fate=${fate}`, false),
          {},
          zdr === undefined ? {} : { "service-zdr": zdr },
        );
  for (const [format, zdr] of [
    ["b64_json"],
    ["url"],
    ["url", "required"],
    ["b64_json", "required"],
  ])
    for (const fate of ["none", "quote", "overloaded", "garbage"])
      yield one(
        "images",
        {
          ...ENTRY_POINTS.images.body("clean-images/draw", `${words.prompt} fate=${fate}`, false),
          response_format: format,
        },
        {},
        zdr === undefined ? {} : { "service-zdr": zdr },
      );
  const query = `?zdr=${encodeURIComponent(words.prompt)}`;
  yield one("chat", {}, { method: "GET", path: `/v1/models${query}`, body: undefined });
  yield one(
    "chat",
    {},
    { method: "GET", path: `/v1/models/${encodeURIComponent(words.prompt)}`, body: undefined },
  );
}

async function ask(
  url: string,
  { path, method, headers, body, leaves }: Scenario,
): Promise<string> {
  const away = new AbortController();
  let text = "";
  try {
    const sent = fetch(url + path, {
      method,
      headers,
      signal: away.signal,
      ...(body !== undefined && { body }),
    });
    if (leaves) setTimeout(() => away.abort(), 3);
    const answer = await sent;
    text = JSON.stringify([...answer.headers]);
    for await (const chunk of answer.body!) text += Buffer.from(chunk).toString();
  } catch {
    // Truncated or disconnected: the received part counts.
  }
  return text;
}

async function cli(dir: string, argv: readonly string[], secrets: Record<string, string>) {
  const node = join(ROOT, "node_modules/.bin/node");
  const line = ["--conditions=tollgate-source", join(ROOT, "src/cli/bin.ts"), ...argv];
  const env = { PATH: process.env["PATH"] ?? "", HOME: dir, ...secrets };
  // A rejecting command has output too.
  return run(node, line, { cwd: dir, env }).catch(
    (said: { stdout: string; stderr: string }) => said,
  );
}

async function files(dir: string, when: string, look: (where: string, bytes: Buffer) => void) {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = relative(dir, join(entry.parentPath, entry.name));
    if (EXCEPTIONS.some((known) => known.test(path))) continue;
    look(`${path}, ${when}`, await readFile(join(dir, path)));
  }
}

export const rig: Rig = {
  options: { seed: Date.now() % 1e6, plant: "" },
  run: ({ seed, plant = "" }, say) => canary({ seed: Number(seed), plant, say }),
};
