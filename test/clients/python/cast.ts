// Python clients: one process for each library, which receives its checks one by one. The process
// checks the library's view of the responses, and this file checks that the library's counts equal
// the ledger's.
import assert from "node:assert/strict";
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Check } from "tollgate/testing";
import { countsOf, type Counts } from "../counts.ts";
import { DRAWS, EDITS, EMBEDS, HEARS, SPEAKS, TALKS, type Four } from "../four.ts";
import { ALONE } from "../stage.ts";
import { compiled, older, python } from "./venv.ts";

export interface Library {
  /** Name in the registry. */
  readonly name: string;
  /** The script next to this file. */
  readonly script: string;
  /** It gets the older line of Anthropic's SDK. */
  readonly older?: boolean;
}

export const GENAI_IN_PYTHON: Library = { name: "google-genai", script: "google_genai_sdk.py" };

export const LIBRARIES: readonly Library[] = [
  { name: "openai", script: "openai_sdk.py" },
  { name: "anthropic", script: "anthropic_sdk.py" },
  GENAI_IN_PYTHON,
  { name: "anthropic", script: "anthropic_sdk.py", older: true },
  { name: "langchain-openai", script: "langchain_openai_client.py" },
  { name: "llama-index-llms-openai-like", script: "llama_index_client.py" },
  // It declares support for any line, and only works with this one.
  { name: "pydantic-ai-slim", script: "pydantic_ai_client.py", older: true },
];

/** A library that is silent for this long hangs. Its first line follows its import. */
const SILENT_MS = 120_000;

type Count = Pick<Counts, "input" | "output"> & Partial<Counts>;
interface Told {
  readonly checks?: readonly string[];
  readonly counts?: readonly Count[];
  readonly why?: string;
}

/** Name on the command line, which distinguishes its version lines. */
export const titleOf = ({ name, script, older: isOlder = false }: Library): string =>
  isOlder && script === "anthropic_sdk.py" ? `${name} 0` : name;

export async function pythonChecks(
  library: Library,
  at: Four,
  env: Readonly<Record<string, string>> = {},
): Promise<AsyncDisposable & { readonly checks: readonly Check[] }> {
  const title = titleOf(library);
  const child = spawn(await python(), [join(import.meta.dirname, library.script)], {
    env: {
      ...(library.older && { PYTHONPATH: older }),
      PATH: process.env["PATH"] ?? "",
      LANG: "C.UTF-8",
      PYTHONPYCACHEPREFIX: compiled,
      ...ALONE,
      GATEWAY_URL: at.url,
      GATEWAY_KEY: at.key,
      SPENT_KEY: await at.spent(),
      TALKS: JSON.stringify(TALKS),
      DRAWS: JSON.stringify(DRAWS),
      EMBEDS: JSON.stringify(EMBEDS),
      HEARS: JSON.stringify(HEARS),
      SPEAKS: JSON.stringify(SPEAKS),
      EDITS: JSON.stringify(EDITS),
      CLIENT: title,
      ...env,
    },
  });
  const said = listening(child);
  const { checks = [] } = await said();
  return {
    checks: checks.map((each) => ({
      name: `${title}: ${each}`,
      async run() {
        child.stdin.write(`${JSON.stringify(each)}\n`);
        const { counts = [], why } = await said();
        if (why !== undefined) throw new Error(why);
        await agree(counts, `${title}: ${each}`, at);
      },
    })),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

/** Its next line. Other output is shown if it ends without one. */
function listening(child: ChildProcessWithoutNullStreams): () => Promise<Told> {
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let beside = "";
  child.stderr
    .setEncoding("utf8")
    .on("data", (text: string) => (beside = (beside + text).slice(-20_000)));
  return async () => {
    const timer = setTimeout(() => child.kill("SIGKILL"), SILENT_MS);
    const { value, done } = await lines.next().finally(() => clearTimeout(timer));
    if (done) throw new Error(`it ended without a word:\n${beside}`);
    return JSON.parse(value) as Told;
  };
}

/** Sums over all calls of the check. Counts that a library lacks are not compared. */
async function agree(counts: readonly Count[], check: string, at: Four): Promise<void> {
  const billed = (await at.billed(check)).map(countsOf);
  if (counts.length === 0) return;
  const due: Record<string, number> = {};
  const got: Record<string, number> = {};
  for (const unit of ["input", "cached", "output", "reasoning", "images"] as const) {
    if (!counts.some((count) => unit in count)) continue;
    got[unit] = counts.reduce((sum, count) => sum + (count[unit] ?? 0), 0);
    due[unit] = billed.reduce((sum, count) => sum + count[unit], 0);
  }
  assert.deepEqual(got, due, "it counted something else than the ledger");
}
