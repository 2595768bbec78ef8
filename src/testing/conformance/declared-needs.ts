// What a plugin reaches it is lent, or it says so in `needs`: tried in a process of its own, where each reach is seen.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { NO_DEBUGGER } from "../../lib/disable-debugger.ts";
import { createCheck, type Check } from "../check.ts";
import type { ConformanceSubject } from "./subject.ts";

/** How long a setup may take there: it is given ten seconds by a gateway. */
const SETUP_TIMEOUT_MS = 60_000;

/** None where it is not known which module the plugin is. */
export const needsChecks = ({ module, options }: ConformanceSubject): Check[] =>
  module === undefined
    ? []
    : [
        createCheck("reaches nothing but what it is lent, or says what it needs", async () => {
          const touched = JSON.parse(
            await runScript("access-probe", JSON.stringify({ module, options })),
          ) as string[];
          assert.deepEqual(
            touched,
            [],
            `its import or setup reaches ${touched.join(", ")}: ask ctx.env, ctx.readFile, ctx.fetch, and declare it in needs`,
          );
        }),
      ];

/** What a script beside this file prints, run with these words. Rejects with what it complains of. */
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

/** Those that say what is imported. A test runner's own are not for a script. */
const importFlags = (): string[] =>
  process.execArgv.filter((flag) => /^(--conditions=|-C)/.test(flag));
