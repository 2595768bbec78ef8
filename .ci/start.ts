// Checks that `npm start` in a fresh checkout serves a request, and prints how long that takes. The
// time itself is compared only in the bench, because a busy machine is many times slower.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const ROOT = new URL("..", import.meta.url).pathname;
const URL_ = "http://127.0.0.1:8787";
/** Maximum time until the first response. The goal is 1 s from source. */
const TIMEOUT_MS = 120_000;

const dist = process.argv.includes("--dist");
const where = dist ? mkdtempSync(join(tmpdir(), "start-")) : ROOT;
if (dist) cpSync(join(ROOT, "gateway.yaml"), join(where, "gateway.yaml"));
rmSync(join(where, ".tollgate"), { recursive: true, force: true });
const began = performance.now();
const child = dist
  ? spawn(join(ROOT, "node_modules/.bin/node"), [join(ROOT, "dist/src/cli/bin.js"), "serve"], {
      cwd: where,
      detached: true,
      stdio: ["ignore", "ignore", "inherit"],
    })
  : spawn("npm", ["start", "--silent"], {
      cwd: where,
      detached: true,
      stdio: ["ignore", "ignore", "inherit"],
    });

async function answered(): Promise<boolean> {
  try {
    const key = readFileSync(join(where, ".tollgate/first-key"), "utf8").trim();
    const res = await fetch(`${URL_}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "demo/echo",
        messages: [{ role: "user", content: "Hello, gate." }],
      }),
    });
    return (await res.text()).includes("Hello, gate.");
  } catch {
    return false;
  }
}

let done = false;
while (!done && performance.now() - began < TIMEOUT_MS) {
  done = await answered();
  if (!done) await sleep(10);
}
const ms = Math.round(performance.now() - began);
process.kill(-child.pid!, "SIGTERM");
await Promise.race([new Promise((r) => child.once("exit", r)), sleep(5_000)]);
if (dist) rmSync(where, { recursive: true, force: true });
console.log(
  `${dist ? "dist" : "npm start"}: ${done ? `first answer after ${ms} ms` : "no answer"}`,
);
console.log(done ? "1 passed, 0 failed" : "0 passed, 1 failed");
process.exit(done ? 0 : 1);
