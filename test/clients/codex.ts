// Codex in the form of `codex exec`: responses only, with tools of every type.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { call, say, think, toolResults, type Check } from "tollgate/testing";
import type { Client, Setting } from "./client.ts";
import { judge } from "./judge.ts";
import { declaredIn, NOTES, reading, USAGE } from "./scripts.ts";
import { modelOn, type Script } from "./stage.ts";
import { play, thoughtCameBack } from "./turns.ts";

/** For a known model name it declares other tools, including apply_patch. */
const [UNKNOWN, KNOWN] = ["model", "gpt-5.5"] as const;

export const codex: Client = {
  name: "codex",
  package: { name: "@openai/codex", version: "0.169.0", main: "bin/codex.js" },
  models: [UNKNOWN, KNOWN],
  async asks({ script, at, spoken, cwd, model, words, again, config = "" }) {
    await mkdir(join(cwd, ".codex"), { recursive: true });
    await mkdir(join(cwd, "tmp"), { recursive: true });
    await writeFile(
      join(cwd, ".codex/config.toml"),
      `
model = "${modelOn(spoken, model)}"
model_provider = "gw"
check_for_update_on_startup = false
analytics = { enabled = false }
features = { plugins = false }
[model_providers.gw]
name = "Team gateway"
base_url = "${at.url}/v1"
env_key = "GW_KEY"
wire_api = "responses"
${config}`,
    );
    return {
      args: [
        script,
        "exec",
        "--skip-git-repo-check",
        // The scripts are harmless, and not every machine can create a sandbox.
        "--dangerously-bypass-approvals-and-sandbox",
        ...(again ? ["resume", "--last"] : []),
        words,
      ],
      cwd,
      env: { HOME: cwd, TMPDIR: join(cwd, "tmp"), GW_KEY: at.key },
    };
  },
  reads: (path) => ({ tool: "exec_command", args: { cmd: `cat '${path}'` } }),
  looks: (path) => ({ tool: "view_image", args: { path } }),
  loses: (spoken, model) => [
    ...{
      messages: ["max_output_tokens", "prompt_cache_key", "tools.web_search"],
      "chat-completions": ["tools.web_search"],
      responses: [],
    }[spoken],
    ...(model === KNOWN && spoken !== "responses" ? ["tools.custom", "tools.tool_search"] : []),
    ...(model === KNOWN && spoken === "messages" ? ["text.verbosity"] : []),
  ],
  losesOfPictures: (spoken) =>
    ({
      messages: ["image_url.detail"],
      "chat-completions": ["tool_result.content"],
      responses: [],
    })[spoken],
  keepsThoughts: true,
  own: (of) => [patches(of), ...(of.spoken === "responses" ? [] : [calls(of)]), socket(of)],
};

const PATCH = `*** Begin Patch
*** Add File: new.txt
+new
*** Update File: note.txt
@@
 one
-two
+"2" 🌉
*** End Patch
`;

/** A freeform tool if declared as one, and otherwise a function with one string. */
const patching: Script = (asked) => {
  const [heard] = toolResults(asked);
  if (heard !== undefined)
    return say(heard.includes("Success") ? "Patched." : `It failed: ${heard}`).usage(USAGE);
  const thought = think("I should patch.", "signed");
  const tool = declaredIn(asked).find(({ name }) => name === "apply_patch");
  if (!tool) return say("There is no apply_patch.").usage(USAGE);
  return tool.custom
    ? thought.custom(tool.name, PATCH).usage(USAGE)
    : thought.call(tool.name, { input: PATCH }).usage(USAGE);
};

const patches = (of: Setting): Check => ({
  name: "an apply_patch turn",
  async run() {
    const cwd = await of.at.folder();
    await writeFile(join(cwd, "note.txt"), "one\ntwo\n");
    const played = await play(of, patching, { cwd, model: KNOWN, words: "Change the note." });
    assert.equal(await readFile(join(cwd, "note.txt"), "utf8"), 'one\n"2" 🌉\n', played.err);
    assert.equal(await readFile(join(cwd, "new.txt"), "utf8"), "new\n");
    judge(played, { says: "Patched.", turns: 2, loses: of.client.loses(of.spoken, KNOWN) });
    thoughtCameBack(of, played.asked[1]!);
  },
});

/** An upstream of its own protocol would have to return the namespace itself. */
const calls = (of: Setting): Check => ({
  name: "a tool in a namespace",
  async run() {
    const script: Script = (asked) => {
      const [heard] = toolResults(asked);
      if (heard === undefined)
        return call("multi_agent_v1__close_agent", { target: "nobody" }).usage(USAGE);
      return say(heard.includes("invalid agent id") ? "There is none." : heard).usage(USAGE);
    };
    const played = await play(of, script, { words: "Close the agent." });
    judge(played, { says: "There is none.", turns: 2, loses: of.client.loses(of.spoken, UNKNOWN) });
  },
});

/** Over its socket it warms up first, sends only what is new, and never falls back to HTTP. */
const socket = (of: Setting): Check => ({
  name: "speaks over a WebSocket, and resumes",
  async run() {
    const config = "supports_websockets = true";
    const cwd = await of.at.folder();
    const file = join(cwd, "note.txt");
    await writeFile(file, NOTES[0]);
    const timed = async (script: Script, asking: { words: string; again?: boolean }) => {
      const began = performance.now();
      const played = await play(of, script, { cwd, config, ...asking });
      console.log(`codex over a WebSocket: ${Math.round(performance.now() - began)} ms`);
      assert.doesNotMatch(played.err, /Reconnecting|failed to connect|fall(?:ing)? back/i);
      return played;
    };
    const read = await timed(reading([codex.reads(file)]), { words: "What does the note say?" });
    assert.equal(read.out.trim(), `I read: ${NOTES[0]}`, read.err);
    assert.equal(read.asked.length, 2);
    // One handshake, and each call is billed exactly.
    assert.equal(read.served.filter(({ status }) => status === 101).length, 1, read.err);
    const calls = read.served.flatMap((one) => one.calls);
    assert.equal(calls.length, 2);
    for (const { state } of calls) assert.match(state, /^(exact|unpriced)$/);
    const resumed = await timed(() => say("Of a note.").usage(USAGE), {
      words: "Of what?",
      again: true,
    });
    assert.ok(String(resumed.asked[0]!.body).includes(NOTES[0]), "the session was lost");
    assert.equal(resumed.out.trim(), "Of a note.", resumed.err);
  },
});
