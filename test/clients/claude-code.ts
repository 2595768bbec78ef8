// Claude Code, headless: a question on the command line, the answer on standard output.
import type { Client } from "./client.ts";
import { modelOn } from "./stage.ts";

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
  loses: (spoken) => (spoken === "messages" ? [] : ["cache_control", "context_management"]),
  losesOfPictures: (spoken) => (spoken === "chat-completions" ? ["tool_result.content"] : []),
  // It drops them itself when it takes a conversation up again.
  keepsThoughts: false,
  own: () => [],
};
