#!/usr/bin/env node
// `tollgate`, wherever it is typed: in a package what was built, in a checkout the source, which needs no build.
// Plain JavaScript, for nobody knows yet which Node this is.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const source = at("bin.ts");

if (existsSync(source)) inCheckout();
else import("../../dist/src/cli/bin.js");

/** A checkout brings its own Node, whatever is first on the path; it takes the place of this one where it can. */
function inCheckout() {
  const own = at("../../node_modules/.bin/node");
  const node = existsSync(own) ? own : process.execPath;
  // Otherwise SIGUSR1 opens a debugger.
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
