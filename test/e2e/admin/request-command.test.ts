// Output of `tollgate request` compared with the gateway's history: actions of hooks, lost fields,
// data policy, and skipped candidates.
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RequestRecord } from "tollgate/plugin";
import { jsonResponse, say, startUpstream, type TestUpstream } from "tollgate/testing";
import type { FoundRequests } from "../../../src/admin/commands/request-commands.ts";
import { runCliInProcess } from "../../kit/process/command-line.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

/** Waits, or fails and is skipped, as the message orders. */
const MOODY = `import { execFile } from "node:child_process";
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({
  api: 1,
  name: "moody",
  summary: "Does as it is told",
  sends: "nowhere",
  setup: () => ({
    async inspect(_request, x) {
      const said = JSON.stringify(x.body.messages);
      if (said.includes("wait")) await new Promise((done) => execFile(process.execPath, ["--version"], done));
      if (said.includes("break")) throw new Error("no luck");
    },
  }),
});
`;

let up: TestUpstream;
let at: InProcessGateway;
beforeAll(async () => {
  up = await startUpstream({
    "POST /sick/chat/completions": jsonResponse({ error: { message: "Busy." } }, 503),
    "POST /*": (asked) => say("Hello").usage({ input: 10, output: 2 }).toResponse(asked),
  });
  at = await startInProcess({
    yaml: `frontends: [chat-completions]
middleware: [zdr, auth, usage, { use: ./moody.mjs, on_error: continue }]
providers:
  sick: { use: openai-compatible, with: { base_url: "${up.url}/sick", api_key: k } }
  open: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
  closed:
    use: openai-compatible
    with: { base_url: "${up.url}/v1" }
    credentials: [{ name: own, with: { api_key: k }, zdr: { declared: true } }]
  spoken: { use: anthropic-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
models:
  either: [open/m, closed/m]
  fast: [sick/m, open/m]
`,
    files: { "moody.mjs": MOODY },
  });
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
});

/** The record and the output: the rows of each name. */
async function shown(body: object, headers: Record<string, string> = {}) {
  const res = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${at.key}`, ...headers },
    body: JSON.stringify({ messages: [{ role: "user", content: "Hello." }], ...body }),
  });
  await res.arrayBuffer();
  expect(res.status).toBe(200);
  const id = res.headers.get("x-request-id")!;
  const { requests } = (await at.ask("requests.show", { id })) as unknown as FoundRequests;
  const { code, out } = await runCliInProcess(["request", id, "-c", at.file]);
  expect(code).toBe(0);
  const rows = (name: string) =>
    out.split("\n").flatMap((line) => {
      const [, first, value] = /^(\S+(?: \S+)*) {2,}(.+?) *$/.exec(line) ?? [];
      return first === name ? [value] : [];
    });
  return { record: requests[0]!.record as RequestRecord, rows };
}

const asking = (content: string, model = "open/m") => ({
  model,
  messages: [{ role: "user", content }],
});

it("shows actions of hooks, and how long the request waited for them", async () => {
  for (const [content, did] of [
    ["wait", /^middleware\.moody inspect: delayed, [\d.]+ ms$/],
    ["break", /^middleware\.moody inspect: skipped/],
  ] as const) {
    const { record, rows } = await shown(asking(content));
    // On a busy machine, the request may have waited for others too.
    const told = rows("hook");
    expect(told).toHaveLength(record.hooks!.length);
    expect(told.filter((line) => did.test(line!))).toHaveLength(1);
  }
});

it("shows lost fields, by code and count", async () => {
  const { record, rows } = await shown({ model: "spoken/m", logit_bias: { 5: 1 }, seed: 7, n: 1 });
  const codes = Object.entries(record.lossCodes);
  expect(codes.length).toBeGreaterThan(0);
  expect(rows("translation warning")).toEqual(codes.map(([code, n]) => `${code} × ${n}`));
});

it("shows the data policy of a private request, and the excluded providers", async () => {
  const { record, rows } = await shown(asking("Hello.", "either"), { "service-zdr": "true" });
  expect(record.zdrReceipt).toContain("closed/chat-completions");
  expect(rows("privacy")).toEqual([`required, ${record.zdrReceipt}`]);
  expect(rows("served by")).toEqual(["closed/m"]);
  const [passed, ...more] = record.skippedCandidates!;
  expect(more).toEqual([]);
  expect(passed).toMatchObject({ candidate: "open/m", credential: "default" });
  expect(rows("skipped")).toEqual([`open/m default: ${passed!.code}, by ${passed!.by}`]);
});

it("shows candidates that were tried last because of a cooldown", async () => {
  for (let i = 0; i < 5; i++) await shown(asking("Hello.", "fast"));
  const { rows } = await shown(asking("Hello.", "fast"));
  expect(rows("skipped")).toEqual(["sick/m default: in cooldown (overloaded)"]);
});

it("shows none of these for an ordinary request", async () => {
  const { record, rows } = await shown(asking("Hello."));
  expect([record.privacy, record.skippedCandidates]).toEqual(["off", undefined]);
  for (const name of ["translation warning", "skipped"])
    expect([name, rows(name)]).toEqual([name, []]);
  expect(rows("hook")).toHaveLength(record.hooks?.length ?? 0);
});
