// Checks that a plugin uses only its context and the access that it declares in `needs`. It runs in
// a separate process, which observes each access.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { NO_DEBUGGER } from "../../lib/disable-debugger.ts";
import { createCheck, type Check } from "../check.ts";
import type { ConformanceSubject } from "./subject.ts";

/** Timeout of a setup in that process, in milliseconds. The gateway itself allows 10 s. */
const SETUP_TIMEOUT_MS = 60_000;

/** Returns no checks if the module of the plugin is unknown. */
export const needsChecks = ({ module, options }: ConformanceSubject): Check[] =>
  module === undefined
    ? []
    : [
        createCheck(
          "uses only resources that the context provides or that needs declares",
          async () => {
            const touched = JSON.parse(
              await runScript("access-probe", JSON.stringify({ module, options })),
            ) as string[];
            assert.deepEqual(
              touched,
              [],
              `the plugin's import or setup accesses ${touched.join(", ")}: use ctx.env, ctx.readFile, or ctx.fetch, and declare the resource in needs`,
            );
          },
        ),
      ];

/**
 * Runs a script of this folder with these arguments and returns its output. Rejects with its error
 * output.
 */
export function runScript(script: string, ...words: readonly string[]): Promise<string> {
  const file = fileURLToPath(
    new URL(`./${script}${import.meta.filename.slice(-3)}`, import.meta.url),
  );
  return new Promise((resolve, reject) =>
    execFile(
      process.execPath,
      [NO_DEBUGGER, ...importFlags(), "--expose-gc", file, ...words],
      { timeout: SETUP_TIMEOUT_MS, maxBuffer: 1 << 26 },
      (error, out, err) =>
        error
          ? reject(new Error(/Error: (.+)/.exec(err)?.[1] ?? `${err}${error.message}`))
          : resolve(out),
    ),
  );
}

/** Returns the flags that control imports. A test runner's own flags do not apply to a script. */
const importFlags = (): string[] =>
  process.execArgv.filter((flag) => /^(--conditions=|-C)/.test(flag));
