// Agent frameworks. Each has a driver script that runs one prompt with a tool that writes a file.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { installed, SHELF } from "../install.ts";
import { compiled, environment } from "../python/venv.ts";
import { writing, type Agent, type AgentPrompt } from "./agent.ts";

const driver = (name: string) => join(import.meta.dirname, "drivers", name);

const env = (of: AgentPrompt) => ({
  HOME: of.cwd,
  DRIVEN: of.installed,
  GATEWAY_URL: of.url,
  GATEWAY_KEY: of.key,
  MODEL: of.model,
  PROMPT: of.prompt,
  STREAM: String(of.stream),
});

const writes = writing("write_file", "path", "text");

const claudeAgentSdk: Agent = {
  name: "claude-agent-sdk",
  package: "@anthropic-ai/claude-agent-sdk",
  version: "0.3.328",
  users: "13,424,350 npm downloads per month",
  protocol: "messages",
  plain: false,
  install: () =>
    installed({ name: claudeAgentSdk.package, version: claudeAgentSdk.version, main: "sdk.mjs" }),
  command: async (of) => ({
    args: [driver("claude-agent-sdk.mjs")],
    env: {
      ...env(of),
      ANTHROPIC_BASE_URL: of.url,
      ANTHROPIC_API_KEY: of.key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
      // As root, it refuses to run without permission prompts, except in a sandbox.
      IS_SANDBOX: "1",
    },
    cwd: of.cwd,
  }),
  writes: writing("Write", "file_path", "content"),
};

const mastra: Agent = {
  name: "mastra",
  package: "@mastra/core",
  version: "1.71.0",
  users: "2,004,092 npm downloads per month",
  protocol: "chat-completions",
  plain: true,
  install: () => installed({ name: mastra.package, version: mastra.version, main: "package.json" }),
  command: async (of) => ({
    args: [driver("mastra.mjs")],
    env: { ...env(of), MASTRA_TELEMETRY_DISABLED: "1" },
    cwd: of.cwd,
  }),
  writes,
};

/** A Python package. The requirements file pins it and all its dependencies. */
function inPython(
  of: Pick<Agent, "name" | "users" | "protocol"> & { readonly script: string },
): Agent {
  const { name, users, protocol, script } = of;
  const requirements = join(import.meta.dirname, `requirements/${name}.txt`);
  const text = readFileSync(requirements, "utf8");
  const version = new RegExp(`^${name}==(.*)$`, "m").exec(text)![1]!;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return {
    name,
    package: name,
    version,
    users,
    protocol,
    plain: true,
    install: () =>
      environment(join(SHELF, `${name}@${version}-${digest}`), (pip) => pip("-r", requirements)),
    command: async (prompt) => ({
      program: prompt.installed,
      args: [driver(script)],
      env: { ...env(prompt), ...OFFLINE, PYTHONPYCACHEPREFIX: compiled },
      cwd: prompt.cwd,
    }),
    writes,
  };
}

const OFFLINE = {
  LITELLM_LOCAL_MODEL_COST_MAP: "True",
  LANGSMITH_TRACING: "false",
};

const litellm = inPython({
  name: "litellm",
  users: "rank 66 of the most downloaded packages on PyPI",
  protocol: "chat-completions",
  script: "litellm_driver.py",
});

const openaiAgents = inPython({
  name: "openai-agents",
  users: "rank 700 on PyPI; 1,571,871 npm downloads per month of @openai/agents",
  protocol: "responses",
  script: "openai_agents_driver.py",
});

const langgraph = inPython({
  name: "langgraph",
  users: "rank 493 on PyPI; 5,993,222 npm downloads per month of @langchain/langgraph",
  protocol: "chat-completions",
  script: "langgraph_driver.py",
});

export const FRAMEWORKS: readonly Agent[] = [
  claudeAgentSdk,
  mastra,
  litellm,
  openaiAgents,
  langgraph,
];
