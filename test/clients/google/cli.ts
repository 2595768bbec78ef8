// Gemini CLI, headless, with models of every protocol: a prompt on the command line, and the
// response on standard output.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Check } from "tollgate/testing";
import type { Play } from "../clients.ts";
import { countsOf } from "../counts.ts";
import { CHECK, four, HELLO, TALKS, type Four } from "../four.ts";
import { installed, type Package } from "../install.ts";
import { PICTURE } from "../scripts.ts";
import { run } from "../stage.ts";

const CLI: Package = { name: "@google/gemini-cli", version: "0.61.0", main: "bundle/gemini.js" };
const PLAY_MS = 180_000;
/**
 * Without the first, it chooses a sign-in method without a headless form. Without the second, it
 * retries for minutes.
 */
const SETTINGS = {
  security: { auth: { selectedType: "gemini-api-key" } },
  general: { disableAutoUpdate: true, disableUpdateNag: true, maxAttempts: 1 },
  telemetry: { enabled: false },
  privacy: { usageStatisticsEnabled: false },
};

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Asking {
  readonly at: Pick<Four, "url" | "key">;
  readonly check: string;
  /** "auto": it chooses a model itself, and calls another one first. */
  readonly model: string;
  /** It reports its response and counts as JSON. */
  readonly json?: boolean;
  /** Written next to it before it starts. */
  readonly files?: Readonly<Record<string, string | Buffer>>;
  readonly words: (folder: string) => string;
}

async function asked(
  script: string,
  { at, check, model, files = {}, words, json = false }: Asking,
): Promise<Ended> {
  const cwd = await mkdtemp(join(tmpdir(), "tollgate-gemini-cli-"));
  try {
    await mkdir(join(cwd, ".gemini"));
    await writeFile(join(cwd, ".gemini/settings.json"), JSON.stringify(SETTINGS));
    for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text);
    const args = [script, "-p", words(cwd), "--approval-mode", "yolo"];
    if (model !== "auto") args.push("-m", model);
    if (json) args.push("--output-format", "json");
    const env = {
      HOME: cwd,
      GOOGLE_GEMINI_BASE_URL: at.url,
      GEMINI_API_KEY: at.key,
      GEMINI_CLI_CUSTOM_HEADERS: `${CHECK}: ${check}`,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
      GEMINI_CLI_NO_RELAUNCH: "true",
    };
    const { code, out, err } = await run({ args, env, cwd }, PLAY_MS);
    return { code, out: out.trim(), err };
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

export const GEMINI_CLI: Play = {
  names: ["gemini-cli", "google"],
  title: `${CLI.name} ${CLI.version}`,
  async cast() {
    const script = await installed(CLI);
    const at = await four();
    const checks = Object.entries(TALKS).flatMap(([provider, model]) =>
      checksOn({ at, script, provider, model }),
    );
    const all = [...checks, chosen(at, script)];
    return { checks: all, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
  },
};

/**
 * Without a model's name, it asks a small model to choose, by a schema. The names that it knows are
 * mapped to models of two protocols.
 */
function chosen(at: Four, script: string): Check {
  const name = "gemini-cli: a model chosen by a schema";
  return {
    name,
    async run() {
      const words = () => "Hello, wörld 🌍";
      const ended = await asked(script, { at, check: name, model: "auto", words });
      assert.deepEqual([ended.out, ended.code], [HELLO, 0], ended.err);
      // A response that did not match the schema would have been requested again.
      assert.equal((await at.billed(name)).length, 2, "one call to choose, one to answer");
    },
  };
}

function checksOn(of: { at: Four; script: string; provider: string; model: string }): Check[] {
  const { at, script, provider, model } = of;
  const check = (
    what: string,
    words: Asking["words"],
    judge: (ended: Ended, check: string) => Promise<void> | void,
    more: Partial<Asking> = {},
  ): Check => {
    const name = `gemini-cli: ${what} on ${provider}`;
    return {
      name,
      run: async () => judge(await asked(script, { at, check: name, model, words, ...more }), name),
    };
  };
  const says = (due: string | RegExp, calls: number) => async (ended: Ended, name: string) => {
    if (typeof due === "string") assert.equal(ended.out, due, ended.err);
    else assert.match(ended.out, due, ended.err);
    assert.equal(ended.code, 0, ended.err);
    // It counts an image's tokens before it sends it: a row without usage.
    const rows = (await at.billed(name)).filter(({ output }) => output !== undefined);
    assert.equal(rows.length, calls, `the ledger has other calls: ${JSON.stringify(rows)}`);
  };
  return [
    check("text", () => "Hello, wörld 🌍", says(HELLO, 1)),
    check(
      "tools over three turns",
      (folder) =>
        `Read these notes, one after the other: ${join(folder, "one.txt")} ${join(folder, "two.txt")}.`,
      says(/^(I should look\.)?\s*They say: .*a «green» 🌉 in two\.txt/s, 3),
      {
        files: {
          "one.txt": 'A "red" one in one.txt',
          "two.txt": "And a «green» 🌉 in two.txt",
        },
      },
    ),
    check("a picture", (folder) => `What is this? @${join(folder, "dot.png")}`, says("A dot.", 1), {
      files: { "dot.png": PICTURE },
    }),
    check(
      "thoughts",
      () => "Hello",
      async ({ out, code, err }, name) => {
        assert.equal(code, 0, err);
        const { response, stats } = JSON.parse(out);
        assert.equal(response, HELLO);
        const models: any[] = Object.values(stats.models);
        const counted = models.reduce((sum, { tokens }) => sum + tokens.thoughts, 0);
        const due = (await at.billed(name))
          .map(countsOf)
          .reduce((sum, one) => sum + one.reasoning, 0);
        assert.deepEqual([counted, counted > 0 || provider === "mmsg"], [due, true]);
      },
      { json: true },
    ),
    check("20 s of silence", () => "First be silent.", says(HELLO, 1)),
    check(
      "a stream that breaks off",
      () => "Please break off.",
      ({ code, out, err }) => {
        assert.notEqual(code, 0, `it was taken for an answer: ${out}`);
        // Its fetch may see the end of the connection before it has read the last event.
        assert.match(out + err, /broke|terminated/i);
      },
    ),
    {
      name: `gemini-cli: a spent budget on ${provider}`,
      async run() {
        const spent = { url: at.url, key: await at.spent() };
        const ended = await asked(script, {
          at: spent,
          check: "spent",
          model,
          words: () => "Hello",
        });
        assert.notEqual(ended.code, 0, ended.out);
        assert.match(ended.out + ended.err, /budget/i);
      },
    },
  ];
}
