#!/usr/bin/env node
// The `tollgate` executable. In a package it runs the built program, in a checkout the source,
// which needs no build. Plain JavaScript, because the version of Node.js is not checked yet.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const source = at("bin.ts");

if (existsSync(source)) inCheckout();
else import("../../dist/src/cli/bin.js");

/**
 * Runs the source with the checkout's own Node.js, whatever is first on the path. Replaces the
 * current process where `execve` exists, else starts a child process.
 */
function inCheckout() {
  const own = at("../../node_modules/.bin/node");
  const node = existsSync(own) ? own : process.execPath;
  // Without this flag SIGUSR1 opens a debugger.
  const args = [
    "--disable-sigusr1",
    "--conditions=tollgate-source",
    source,
    ...process.argv.slice(2),
  ];
  if (process.execve && process.platform !== "win32")
    return process.execve(node, [node, ...args], process.env);
  const child = spawn(node, args, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
}
