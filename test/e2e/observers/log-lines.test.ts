// Lines of the gateway's log during failures, parsed like an operator's program does: each once,
// with the reason, and no rejection for a disconnect or a truncated response.
import { createServer } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, startUpstream, type TestUpstream } from "tollgate/testing";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { spawnTollgate, type ParsedLogLine } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

const HELLO = say("Hello").usage({ input: 10, output: 8 });

let up: TestUpstream;
let at: Daemon;
let busy = true;
const begun = Promise.withResolvers<void>();
const over = Promise.withResolvers<void>();
beforeAll(async () => {
  up = await startUpstream({
    "POST /busy/chat/completions": (asked) =>
      busy
        ? { status: 503, headers: { "content-type": "application/json" }, body: '{"error":{}}' }
        : HELLO.toResponse(asked),
    "POST /v1/chat/completions": async (asked) => {
      if (asked.json().model === "slow") {
        begun.resolve();
        await over.promise;
      }
      if (asked.json().model === "torn")
        return { ...HELLO.toResponse(asked), truncation: { after: { pieces: 2 }, how: "reset" } };
      return HELLO.toResponse(asked);
    },
  });
  // A port without a listener.
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const { port } = free.address() as { port: number };
  free.close();
  at = await startDaemon({
    yaml: `workers: 2
frontends: [chat-completions]
models:
  fast: [busy/m, up/m]
  nobody: [dead/m]
providers:
  busy: { use: openai-compatible, with: { base_url: "${up.url}/busy", api_key: k } }
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
  dead: { use: openai-compatible, with: { base_url: "http://127.0.0.1:${port}/v1", api_key: k } }
`,
  });
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
});

const lines = (is: RegExp): ParsedLogLine[] => at.log.filter(({ msg }) => is.test(msg ?? ""));

/** Resolves to the status when the response has ended in any way. */
async function ask(body: object, more: { key?: string; signal?: AbortSignal } = {}) {
  try {
    const res = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${more.key ?? at.key}`,
        connection: "close",
      },
      body: JSON.stringify({ messages: [{ role: "user", content: "Hello." }], ...body }),
      ...(more.signal && { signal: more.signal }),
    });
    await res.arrayBuffer();
    return res.status;
  } catch {
    return 0;
  }
}

describe("the log says", () => {
  it("a fallback, a cooldown, and a recovery once, with two processes", async () => {
    const asked = Array.from({ length: 12 }, () => askOnNewConnection(at, "fast"));
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    await at.line(/provider unavailable/);
    busy = false;
    // Each process detects the failure separately.
    await until(async () => {
      await Promise.all(Array.from({ length: 6 }, () => askOnNewConnection(at, "busy/m")));
      return lines(/provider recovered/).length > 0;
    });
    await Promise.all(Array.from({ length: 12 }, () => askOnNewConnection(at, "busy/m")));
    expect(lines(/provider unavailable/)[0]).toMatchObject({
      level: "warn",
      provider: "busy",
      model: "m",
      reason: "overloaded",
      until: expect.stringMatching(/^20\d\d-\d\d-\d\dT/),
    });
    expect(lines(/provider recovered/)[0]).toMatchObject({
      level: "info",
      provider: "busy",
      model: "m",
    });
    const [fallback] = lines(/succeeded after fallback/);
    expect(fallback).toMatchObject({ from: "busy/m", to: "up/m", kind: "overloaded" });
  });

  it("the system's error code of a failed connection", async () => {
    expect(await ask({ model: "nobody" })).toBe(502);
    // A target in cooldown from the previous test may have failed too.
    const failed = () => lines(/request failed/).filter(({ model }) => model === "nobody");
    await until(async () => failed().length > 0);
    expect(failed()[0]).toMatchObject({
      level: "error",
      code: "connect_failed",
      errno: "ECONNREFUSED",
      outcome: "upstream_error",
    });
  });

  it("a truncated response and a client's disconnect, neither as a refusal", async () => {
    await ask({ model: "up/torn", stream: true });
    expect(await at.line(/response aborted/)).toMatchObject({
      level: "error",
      status: 200,
      outcome: "upstream_error",
    });
    const gone = new AbortController();
    const asked = ask({ model: "up/slow" }, { signal: gone.signal });
    await begun.promise;
    gone.abort();
    await asked;
    expect(await at.line(/client disconnected/)).toMatchObject({
      level: "info",
      outcome: "canceled",
    });
    over.resolve();
    expect(lines(/request refused/)).toEqual([]);
  });

  it("a wrong key immediately, and afterwards only the count", async () => {
    const statuses = await Promise.all(
      Array.from({ length: 40 }, () => ask({ model: "up/m" }, { key: "tg_nobody" })),
    );
    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(await ask({ model: "nowhere/m" })).toBe(404);
    await until(() => lines(/request refused/).some(({ status }) => status === 404));
    // Each process counts separately, and reports the rest when it ends.
    const refused = () => lines(/request refused/).filter(({ status }) => status === 401);
    expect(refused().length).toBeLessThanOrEqual(2);
    await at.stop();
    // All lines exist now: those of the first test appear once. At most one fallback per process;
    // later ones are counted.
    const of = (is: RegExp) => lines(is).filter(({ provider }) => provider === "busy");
    expect(of(/provider unavailable/)).toHaveLength(1);
    expect(of(/provider recovered/)).toHaveLength(1);
    const fallbacks = lines(/succeeded after fallback/).filter(({ from }) => from === "busy/m");
    expect(fallbacks.filter(({ times }) => times === undefined).length).toBeLessThanOrEqual(2);
    const times = refused().map((line) => (line["times"] as number | undefined) ?? 1);
    expect(times.reduce((sum, n) => sum + n, 0)).toBe(40);
  });
});

describe("a failed start is one line of JSON for programs", () => {
  let other: Daemon;
  beforeAll(async () => {
    other = await startDaemon({ yaml: "providers: { demo: { use: demo } }\n" });
  });
  afterAll(() => other?.[Symbol.asyncDispose]());

  const started = async (yaml: string) => {
    await other.write(yaml.replace("PORT", new URL(other.url).port));
    const child = spawnTollgate({ cwd: other.dir, args: ["serve", "-c", other.file] });
    let [out, err] = ["", ""];
    child.stdout.on("data", (text: Buffer) => (out += text));
    child.stderr.on("data", (text: Buffer) => (err += text));
    const [code] = (await once(child, "close")) as [number];
    return {
      code,
      err,
      said: out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as ParsedLogLine),
    };
  };

  it("if a gateway already runs", async () => {
    const { code, err, said } = await started("providers: { demo: { use: demo } }\n");
    expect([code, err]).toEqual([1, ""]);
    expect(said).toMatchObject([
      { level: "error", msg: expect.stringMatching(/gateway start failed/) },
    ]);
  });

  it("if a port is in use", async () => {
    const { code, err, said } = await started(
      "listen: { port: PORT }\nstate_dir: ./other\nproviders: { demo: { use: demo } }\n",
    );
    expect(code).toBeGreaterThan(0);
    expect(err).toBe("");
    expect(said).toMatchObject([
      { level: "error", msg: expect.stringMatching(/gateway start failed/) },
    ]);
  });
});

/** Throws after its hook, as the message orders, and again after that. */
const FATAL = `import { defineMiddleware } from "tollgate/plugin";
const later = (what) => setTimeout(() => { throw what; });
export default defineMiddleware({
  api: 1,
  name: "fatal",
  summary: "Ends the process",
  sends: "nowhere",
  setup: () => ({
    inspect(_request, x) {
      const said = JSON.stringify(x.body.messages);
      if (said.includes("throw")) later(new Error("no\\nluck", { cause: new TypeError("a cause") }));
      if (said.includes("reject")) void Promise.reject(new Error("no\\nluck"));
      if (said.includes("word")) later("no\\nluck");
      if (said.includes("again")) for (let i = 0; i < 3; i++) later(new Error("again"));
    },
  }),
});
`;

describe("an uncaught error is one line of JSON for programs", () => {
  const started = (workers: number) =>
    startDaemon({
      yaml: `workers: ${workers}
frontends: [chat-completions]
middleware: [auth, ./fatal.mjs]
providers: { demo: { use: demo } }
`,
      files: { "fatal.mjs": FATAL },
    });
  const breaking = ({ url, key }: Daemon, content: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content }] }),
    }).then(
      (res) => res.arrayBuffer(),
      () => {},
    );
  /** The complete output, every line parsed. The last one may be incomplete. */
  const written = (of: Daemon): ParsedLogLine[] =>
    of
      .output()
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as ParsedLogLine);
  const failures = (of: Daemon) => written(of).filter(({ level }) => level === "error");

  it.each([
    ["throw, and again", { message: "no\nluck", name: "Error", cause: { message: "a cause" } }],
    ["reject, and again", { message: "no\nluck" }],
    ...(NIGHTLY ? [["word, and again", "no\nluck"] as const] : []),
  ] as const)("in a single process, which then ends: %s", async (content, error) => {
    await using one = await started(1);
    await breaking(one, content);
    expect(await one.exit).toEqual({ code: 1, signal: null });
    await one.line(/^shutting down/);
    expect(failures(one)).toMatchObject([{ msg: "uncaught error, shutting down", error }]);
    if (typeof error === "object")
      expect((failures(one)[0]!["error"] as { stack: string }).stack).toContain("fatal.mjs");
  });

  it.runIf(NIGHTLY)("in one of two processes, which is replaced", async () => {
    await using two = await started(2);
    await breaking(two, "throw");
    await two.line(/worker replaced/);
    expect(await askOnNewConnection(two, "demo/echo")).toBe(200);
    expect(failures(two).filter(({ error }) => error !== undefined)).toMatchObject([
      { msg: "uncaught error", error: { message: "no\nluck" } },
    ]);
  });
});
