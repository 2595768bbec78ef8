// A key in a URL is a secret like one in a header: it grants access, and is visible to nothing
// behind authentication.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startUpstream, jsonResponse, type TestUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { spellings } from "../../rig/privacy/canary.ts";

const NAMES = ["key", "api_key", "access_token", "%6bey", "API_KEY", "access%5ftoken"];

/** Reads its key from the URL, and returns what it sees of it in responses and errors. */
const FRONTEND = `
import { chatCompletions } from "tollgate/protocols/chat-completions";
const seen = (x) => ({ path: x.path, query: String(x.query), headers: { ...x.headers } });
export default {
  "~tollgate": "frontend", api: 1, name: "addressed", summary: "Keys in addresses",
  setup: (_options, ctx) => ({
    protocol: chatCompletions(),
    extractCredential: (_headers, query) =>
      query.get("key") ?? query.get("api_key") ?? query.get("access_token") ??
      query.get("API_KEY") ?? undefined,
    routes: [
      { method: "POST", path: "/a/chat", actionType: "generate" },
      { method: "GET", path: "/a/seen", handle: (x) => {
        ctx.log.info(seen(x), "seen");
        return { status: 200, body: seen(x) };
      } },
    ],
  }),
};`;

const NOSY = `
export default {
  "~tollgate": "middleware", api: 1, name: "nosy", summary: "Logs all that it sees", sends: "nowhere",
  setup: (_options, ctx) => ({
    admit: (x) => ctx.log.warn({ path: x.path, query: String(x.query), headers: { ...x.headers } }, "admit"),
    prepare: (out, call) => ctx.log.warn({ path: out.path, query: String(call.query), headers: { ...out.headers } }, "prepare"),
    settle: (x, outcome) => ctx.log.warn({ query: String(x.query), status: outcome.status }, "settle"),
  }),
};`;

const PROVIDER = `
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { apiKeySchema } from "tollgate/plugin";
export default {
  "~tollgate": "provider", api: 1, name: "asks", summary: "Hands the query on", credential: apiKeySchema,
  options: { type: "object", additionalProperties: false, required: ["base_url"], properties: {
    base_url: { type: "string", "x-origin": true, description: "Where" } } },
  setup: ({ base_url }) => ({ endpoints: [{
    protocol: chatCompletions(), base: base_url,
    auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
    paths: { generate: (of) => "/chat/completions?" + String(of.query) },
  }] }),
};`;

let up: TestUpstream;
let gateway: Daemon;
beforeAll(async () => {
  up = await startUpstream({
    "*": jsonResponse({
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  });
  gateway = await startDaemon({
    yaml: `frontends: [./addressed.mjs]
middleware: [auth, ./nosy.mjs]
providers:
  asks: { use: ./asks.mjs, with: { base_url: "${up.url}", api_key: sk-up } }
`,
    files: { "addressed.mjs": FRONTEND, "nosy.mjs": NOSY, "asks.mjs": PROVIDER },
    args: ["--log-level", "debug"],
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await up.close();
});

const body = JSON.stringify({ model: "asks/m", messages: [{ role: "user", content: "Hi" }] });
const ask = (path: string, query: string) =>
  fetch(`${gateway.url}${path}?${query}`, {
    method: path === "/a/chat" ? "POST" : "GET",
    headers: { "content-type": "application/json" },
    ...(path === "/a/chat" && { body }),
  });

/** Every file that the gateway keeps, except the one with the first key. */
function kept(folder: string): string {
  let all = "";
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && entry.name !== "first-key")
      all += readFileSync(join(entry.parentPath, entry.name), "latin1");
  return all;
}

it("grants access, and reaches no upstream, log, hook, or ledger", async () => {
  const wrong = "tg_wrong_0123456789canary";
  const heard: string[] = [];
  for (const name of NAMES) {
    for (const path of ["/a/chat", "/a/seen"]) {
      const res = await ask(path, `alt=sse&${name}=${gateway.key}&x=%41`);
      heard.push(await res.text());
      expect(res.status, `${name} at ${path}: ${heard.at(-1)}`).toBe(200);
    }
    for (const path of ["/a/chat", "/a/seen", "/a/nothing", "/files/x.png", "/%zz", "/"]) {
      const res = await ask(path, `${name}=${wrong}`);
      heard.push(await res.text());
    }
  }
  // Other parameters are forwarded, byte for byte.
  expect(up.requests.map(({ query }) => String(query))).toEqual(NAMES.map(() => "alt=sse&x=A"));
  expect(heard.filter((text) => text.includes("alt=sse&x=A"))).toHaveLength(NAMES.length);
  const upstreams = JSON.stringify(
    up.requests.map(({ path, query, rawHeaders, body }) => [
      path,
      String(query),
      rawHeaders,
      String(body),
    ]),
  );
  await gateway.line(({ msg }) => msg === "settle");
  const logged = gateway.output();
  expect(logged).toContain("alt=sse");
  const ledger = kept(gateway.stateDir);
  for (const key of [gateway.key, wrong])
    for (const spelling of spellings(key)) {
      expect(upstreams).not.toContain(spelling);
      expect(logged).not.toContain(spelling);
      expect(heard.join("\n")).not.toContain(spelling);
      expect(ledger).not.toContain(spelling);
    }
});
