// Claude Code, headless: a prompt on the command line, and the response on standard output.
import assert from "node:assert/strict";
import { call, say, toolResults, type UpstreamRequest, type Check } from "tollgate/testing";
import type { Client, Setting } from "./client.ts";
import { judge } from "./judge.ts";
import { answering, declaredIn, refusing, USAGE } from "./scripts.ts";
import { modelOn, type Script } from "./stage.ts";
import { play } from "./turns.ts";

export const claudeCode: Client = {
  name: "claude-code",
  package: { name: "@anthropic-ai/claude-code", version: "2.1.330", main: "cli-wrapper.cjs" },
  models: ["model", "claude-sonnet-4-6"],
  asks: async ({ script, at, spoken, cwd, model, words, again }) => ({
    args: [
      script,
      "--print",
      ...(again ? ["--continue"] : []),
      "--model",
      modelOn(spoken, model),
      words,
    ],
    cwd,
    env: {
      HOME: cwd,
      ANTHROPIC_BASE_URL: at.url,
      ANTHROPIC_API_KEY: at.key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
    },
  }),
  reads: (file_path) => ({ tool: "Read", args: { file_path } }),
  looks: (file_path) => ({ tool: "Read", args: { file_path } }),
  loses: (spoken) =>
    spoken === "messages" ? [] : ["cache_control", "context_management", "tools.defer_loading"],
  losesOfPictures: (spoken) => (spoken === "chat-completions" ? ["tool_result.content"] : []),
  // It drops them itself when it resumes a conversation.
  keepsThoughts: false,
  own: (of) => [searches(of), ...(of.spoken === "messages" ? [recovers(of)] : [])],
};

/** It declares most of its tools only after the model has searched for them. */
const searches = (of: Setting): Check => ({
  name: "finds a tool by searching",
  async run() {
    const declared = (asked: UpstreamRequest) => declaredIn(asked).map(({ name }) => name);
    const script: Script = (asked) =>
      toolResults(asked).length === 0
        ? call("ToolSearch", { query: "select:NotebookEdit", max_results: 5 }).usage(USAGE)
        : say(declared(asked).includes("NotebookEdit") ? "Found." : "Lost.").usage(USAGE);
    const played = await play(of, script, { words: "Edit the notebook." });
    const loses = of.client.loses(of.spoken, "model");
    const shown = {
      messages: [],
      "chat-completions": ["tool_reference"],
      responses: ["messages content"],
    }[of.spoken];
    judge(played, { says: "Found.", turns: 2, loses, losesLast: [...loses, ...shown] });
    assert.ok(!declared(played.asked[0]!).includes("NotebookEdit"), "it was there all the time");
  },
});

/** It reads the error in the upstream's own message, and continues without the field. */
const recovers = (of: Setting): Check => ({
  name: "does without what upstream does not take",
  async run() {
    const script: Script = (asked) => {
      const { messages, context_management } = asked.json();
      if (context_management)
        return refusing(400, "context_management: Extra inputs are not permitted")(asked);
      if (messages.some(({ role }: { role: string }) => role === "system"))
        return refusing(400, "messages.1: role 'system' is not supported on this model")(asked);
      return answering("Without.");
    };
    const played = await play(of, script, { words: "Hello" });
    assert.equal(played.out.trim(), "Without.", played.err);
    assert.equal(played.code, 0);
    assert.equal(played.asked.length, 3);
  },
});
