/**
 * Every way to send a signal to the gateway from JavaScript. A request may name process and signal
 * in x-signal.
 */
const ROADS: Readonly<Record<string, string>> = {
  kill: "process.kill(gateway, signal)",
  "kill-imported": "(ours as any).kill(gateway, signal)",
  "kill-of-another-realm": 'process.getBuiltinModule("process").kill(gateway, signal)',
  "kill-all": "process.kill(-1, signal)",
  "kill-raw": "(process as any)._kill(gateway, 9)",
  "kill-debugger": "(process as any)._debugProcess(gateway)",
  "kill-binding": '(process as any).binding("process_methods")._kill(gateway, 9)',
  "kill-execve": '(process as any).execve("/bin/kill", ["kill", "-9", String(gateway)])',
  "kill-handle": "new (ChildProcess as any)()._handle.kill(9)",
  "kill-child": "new (ChildProcess as any)().kill(9)",
  "kill-spawn": 'execFileSync("/bin/kill", ["-9", String(gateway)])',
  "kill-start":
    'new (ChildProcess as any)().spawn({ file: "/bin/kill", args: ["kill", "-9", String(gateway)] })',
};
const SIGNALS = `  "signals": (x) => {
    const [named, signal = "SIGKILL"] = String(x.headers["x-signal"] ?? "").split(" ");
    const gateway: any = Number(named) || process.ppid;
    const roads: Record<string, () => unknown> = {
${Object.entries(ROADS)
  .map(([name, code]) => `      ${JSON.stringify(name)}: () => ${code},`)
  .join("\n")}
    };
    const sent = Object.keys(roads).filter((name) => { try { roads[name]!(); return true; } catch { return false; } });
    if (sent.length === 0 && !x.headers["x-signal"]) throw new Error("no signal was sent");
    x.setResponseHeader("x-sent", sent.join(" ") || "none");
  },`;

/**
 * A guard that follows the orders in a request, valid and invalid. It is written like any author's.
 */
export const GUARD = `
import { defineMiddleware, fail } from "tollgate/plugin";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { ChildProcess, execFileSync } from "node:child_process";
import * as ours from "node:process";
import { Worker } from "node:worker_threads";

const born = String(Math.random());
const said = (request: any): string => JSON.stringify(request);
const kept: unknown[] = [];
const asks = async (x: any, ctx: any, model: string, signal?: AbortSignal) => {
  const body = { model, messages: [{ role: "user", content: "May it?" }] };
  const { id, calls, body: said } = await ctx.sendSubrequest({ path: "/v1/chat/completions", body }, { parentRequest: x, signal });
  x.setResponseHeader("x-judge", said.choices[0].message.content);
  x.setResponseHeader("x-judge-calls", String(calls.length));
  x.setResponseHeader("x-judge-cost", typeof calls[0].costNano);
};
const ways: Record<string, (x: any, ctx: any) => unknown> = {
  "read-a-file": () => { readFileSync(process.platform === "linux" ? "/etc/passwd" : "/etc/hosts"); },
  "write-a-file": () => { writeFileSync("/tmp/tollgate-was-here", "x"); },
  "dial-out": () => new Promise((resolve, reject) => connect(9, "127.0.0.1").on("error", reject).on("connect", resolve)),
  "fork": () => { execFileSync("/bin/true"); },
  "thread": () => { new Worker("1", { eval: true }); },
  "env": (x, ctx) => { x.setResponseHeader("x-env", Object.keys(process.env).join("_") + ctx.env("NAMED")); },
  "unnamed-env": (_x, ctx) => { ctx.env("SECRET"); },
  "named-file": async (x, ctx) => { x.setResponseHeader("x-file", (await ctx.readFile("named.txt")).toString() + readFileSync(import.meta.dirname + "/named.txt", "utf8")); },
  "unnamed-file": async (_x, ctx) => { await ctx.readFile("gateway.yaml"); },
  "unnamed-file-beside": async (_x, ctx) => { await ctx.readFile("named.txt/../unnamed.txt"); },
  "unnamed-file-itself": () => { readFileSync(import.meta.dirname + "/unnamed.txt"); },
  "private-host": async (_x, ctx) => { await ctx.fetch("http://127.0.0.1:9/"); },
  "metadata-host": async (_x, ctx) => { await ctx.fetch("http://169.254.169.254/latest/"); },
  "control-socket": async (_x, ctx) => { await new Promise((done, failed) => connect(process.cwd() + "/../control.sock").on("connect", done).on("error", failed)); },
  "ask": (x, ctx) => asks(x, ctx, "other/echo"),
  "ask-where-there-is-none": (x, ctx) => asks(x, ctx, "nowhere/none"),
  "ask-itself": (x, ctx) => asks(x, ctx, "demo/echo"),
  "ask-and-give-up": (x, ctx) => asks(x, ctx, "slow/model", AbortSignal.timeout(1_000)),
  "ask-for-another": async (_x, ctx) => { await ctx.sendSubrequest({ path: "/v1/chat/completions", body: { model: "other/echo", messages: [] } }, { parentRequest: { id: "a-b" } }); },
  "wait-for-its-client": (x, ctx) => new Promise((done) => {
    x.signal.addEventListener("abort", () => { ctx.log.info({}, "its client has gone"); done(); });
    ctx.log.info({}, "it waits for its client");
  }),
  "loop": () => { for (;;) ; },
  "leak": () => { for (;;) kept.push(new Array(1e6).fill(Math.random())); },
  "leak-bytes": () => { for (let i = 0; i < 1100; i++) kept.push(Buffer.alloc(1 << 20, 1)); return new Promise(() => {}); },
  "exit": () => process.exit(3),
  "abort": () => process.abort(),
${SIGNALS}
  "unhandled": () => { setImmediate(() => { throw new Error("late"); }); },
  "throw": () => { throw new TypeError("its own mistake"); },
  "hang": () => new Promise(() => {}),
  "refuse": () => fail("forbidden", "Not these words.", { code: "words" }),
  "label": (x) => { x.addLabel("seen", x.model); x.setResponseHeader("x-guard", "was here"); },
  "query": (x) => x.setResponseHeader("x-query", "[" + x.query.get("a") + "]"),
};
export default defineMiddleware({
  api: 1, name: "guard", summary: "Does what it is told", sends: "nowhere",
  options: { type: "object", additionalProperties: false, properties: {
    mask: { type: "string", default: "never", description: "A word that it takes out of answers" } } },
  needs: { env: ["NAMED"], files: ["named.txt"] },
  setup: ({ mask }, ctx) => ({
    edit: ({ headers, body }) =>
      headers["x-edit"] ? { messages: [...(body.messages as any), { role: "user", content: headers["x-edit"] }], user: undefined } as never : undefined,
    watch: (call, stop) => (event) => {
      if (event.type !== "finish" || call.exchange.headers["x-do"] !== "ask-at-the-end") return;
      // The gateway finished the request long ago.
      for (const end = Date.now() + 300; Date.now() < end; ) ;
      asks({ setResponseHeader() {} }, { sendSubrequest: (of: any) => ctx.sendSubrequest(of, { parentRequest: call.exchange }) }, "other/echo")
          .then(() => ctx.log.info({}, "asked beside an answer"), (error) => stop({ kind: "internal", message: String(error) }));
    },
    async inspect(request, x) {
      const way = Object.keys(ways).find((each) => said(request).includes("do:" + each + ";"));
      if (way) await ways[way]!(x, ctx);
    },
    event: (_call, next) => (event) =>
      next(event.type === "delta" ? { ...event, text: event.text.replaceAll(mask, "***") } : event),
    commands: { born: { summary: "Which process it is", run: async () => born } },
  }),
});
`;
