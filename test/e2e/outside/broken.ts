/** A guard that does what it is told in the request, good and bad. It is written as any author would write one. */
export const GUARD = `
import { defineMiddleware, fail } from "tollgate/plugin";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { execFileSync } from "node:child_process";
import { Worker } from "node:worker_threads";

const said = (request: any): string => JSON.stringify(request);
const kept: unknown[] = [];
const ways: Record<string, (x: any) => unknown> = {
  "read-a-file": () => { readFileSync(process.platform === "linux" ? "/etc/passwd" : "/etc/hosts"); },
  "write-a-file": () => { writeFileSync("/tmp/tollgate-was-here", "x"); },
  "dial-out": () => new Promise((resolve, reject) => connect(9, "127.0.0.1").on("error", reject).on("connect", resolve)),
  "fork": () => { execFileSync("/bin/true"); },
  "thread": () => { new Worker("1", { eval: true }); },
  "env": (x) => { x.label("env", Object.keys(process.env).join("_") || "none"); },
  "loop": () => { for (;;) ; },
  "leak": () => { for (;;) kept.push(new Array(1e6).fill(Math.random())); },
  "leak-bytes": () => { for (let i = 0; i < 1100; i++) kept.push(Buffer.alloc(1 << 20, 1)); return new Promise(() => {}); },
  "exit": () => process.exit(3),
  "kill": () => process.kill(process.pid, "SIGKILL"),
  "unhandled": () => { setImmediate(() => { throw new Error("late"); }); },
  "throw": () => { throw new TypeError("its own mistake"); },
  "hang": () => new Promise(() => {}),
  "refuse": () => fail("forbidden", "Not these words.", { code: "words" }),
  "label": (x) => { x.label("seen", x.model); x.header("x-guard", "was here"); },
};
export default defineMiddleware({
  api: 1, name: "guard", summary: "Does what it is told", sends: "nowhere",
  options: { type: "object", additionalProperties: false, properties: {
    mask: { type: "string", default: "never", description: "A word that it takes out of answers" } } },
  setup: ({ mask }, ctx) => ({
    async inspect(request, x) {
      const way = Object.keys(ways).find((each) => said(request).includes("do:" + each + ";"));
      if (way) await ways[way]!(x);
    },
    event: (_call, next) => (event) =>
      next(event.type === "delta" ? { ...event, text: event.text.replaceAll(mask, "***") } : event),
    commands: { pid: { summary: "Its process", run: async () => ({ pid: process.pid }) } },
  }),
});
`;
