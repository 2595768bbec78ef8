// Coding agents as clients of MCP: a scripted model calls a tool of a server behind the gateway. The
// agents use the gateway for the model, too.
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { call, say, scriptedModel, startUpstream, toolResults } from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { startFakeServer } from "../../plugins/frontends/mcp/fake-server.ts";
import { installed, isInstalled, type Package } from "../install.ts";
import { declaredIn } from "../scripts.ts";
import { run } from "../stage.ts";

const { CI, CLIENTS } = process.env;
const canRun = (of: Package) => CI !== undefined || CLIENTS !== undefined || isInstalled(of);
const RUN_MS = 240_000;
const WORDS = "Call the tool echo.";
const { secret } = mintKey();
const report: string[] = [];

/** Another Node on this machine. */
const otherNode = (() => {
  const found = spawnSync("which", ["-a", "node"], { encoding: "utf8" });
  return found.stdout.split("\n").find((path) => /^\/(?:usr\/)?(?:local\/)?bin\//.test(path));
})();

interface Agent {
  readonly package: Package;
  /** Program that runs the agent. Default: this Node. Undefined: the agent cannot run. */
  readonly program?: string | undefined;
  /** Writes the config into the folder, and returns the arguments and variables. */
  start(of: {
    readonly script: string;
    readonly cwd: string;
    readonly url: string;
  }): Promise<{ readonly args: readonly string[]; readonly env: Record<string, string> }>;
}

const bearer = { Authorization: `Bearer ${secret}` };

const AGENTS: Readonly<Record<string, Agent>> = {
  "claude-code": {
    package: { name: "@anthropic-ai/claude-code", version: "2.1.330", main: "cli-wrapper.cjs" },
    async start({ script, cwd, url }) {
      const servers = { gate: { type: "http", url: `${url}/mcp/one`, headers: bearer } };
      await writeFile(join(cwd, "mcp.json"), JSON.stringify({ mcpServers: servers }));
      const mcp = ["--mcp-config", join(cwd, "mcp.json"), "--strict-mcp-config"];
      return {
        args: [script, "--print", WORDS, ...mcp, "--allowedTools", "mcp__gate__echo,ToolSearch"],
        env: {
          ANTHROPIC_BASE_URL: url,
          ANTHROPIC_API_KEY: secret,
          ANTHROPIC_MODEL: "claude-sonnet-4-6",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          DISABLE_AUTOUPDATER: "1",
          DISABLE_TELEMETRY: "1",
        },
      };
    },
  },
  codex: {
    package: { name: "@openai/codex", version: "0.169.0", main: "bin/codex.js" },
    async start({ script, cwd, url }) {
      await mkdir(join(cwd, ".codex"), { recursive: true });
      await writeFile(
        join(cwd, ".codex/config.toml"),
        `
model = "gpt-model"
model_provider = "gw"
check_for_update_on_startup = false
analytics = { enabled = false }
features = { plugins = false }
[model_providers.gw]
name = "Team gateway"
base_url = "${url}/v1"
env_key = "GW_KEY"
wire_api = "responses"
[mcp_servers.gate]
url = "${url}/mcp/one"
bearer_token_env_var = "GW_KEY"
`,
      );
      const options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
      return { args: [script, "exec", ...options, WORDS], env: { GW_KEY: secret } };
    },
  },
  "gemini-cli": {
    // Its HTTP client reads no headers of responses on Node 26.
    program: otherNode,
    package: { name: "@google/gemini-cli", version: "0.61.0", main: "bundle/gemini.js" },
    async start({ script, cwd, url }) {
      await mkdir(join(cwd, ".gemini"), { recursive: true });
      const settings = {
        security: { auth: { selectedType: "gemini-api-key" } },
        general: { disableAutoUpdate: true, disableUpdateNag: true, maxAttempts: 1 },
        telemetry: { enabled: false },
        privacy: { usageStatisticsEnabled: false },
        mcpServers: { gate: { httpUrl: `${url}/mcp/one`, headers: bearer, trust: true } },
      };
      await writeFile(join(cwd, ".gemini/settings.json"), JSON.stringify(settings));
      return {
        args: [script, "-p", WORDS, "--approval-mode", "yolo", "-m", "gemini-model"],
        env: {
          GOOGLE_GEMINI_BASE_URL: url,
          GEMINI_API_KEY: secret,
          GEMINI_CLI_TRUST_WORKSPACE: "true",
          GEMINI_CLI_NO_RELAUNCH: "true",
        },
      };
    },
  },
};

afterAll(() => console.log(report.join("\n")));

describe.each(Object.entries(AGENTS))("%s", (name, agent) => {
  const hasProgram = !("program" in agent) || agent.program !== undefined;
  it.skipIf(!canRun(agent.package) || !hasProgram).each(["2026-07-28", "2025-11-25"] as const)(
    "calls a tool of a server in %s",
    async (revision) => {
      await using server = await startFakeServer({
        revision,
        tools: [
          {
            name: "echo",
            description: "Repeats the message.",
            inputSchema: { type: "object", properties: { message: { type: "string" } } },
          },
        ],
      });
      await using up = await startUpstream(
        scriptedModel((asked) => {
          const names = declaredIn(asked).map((tool) => tool.name);
          const echo = names.find((one) => one.endsWith("echo"));
          const results = toolResults(asked).length;
          if (echo !== undefined && results < 2 && !JSON.stringify(asked.json()).includes("pong"))
            return call(echo, { message: "pong" });
          if (names.includes("ToolSearch") && results === 0)
            return call("ToolSearch", { query: "select:mcp__gate__echo", max_results: 5 });
          return say("Done.");
        }),
      );
      const options = { servers: { one: { url: server.url } } };
      await using gateway = await startInProcess({
        yaml: `
frontends: [messages, responses, gemini, { use: mcp, with: ${JSON.stringify(options)} }]
store: memory
middleware: [{ use: auth, with: { keys: [{ id: agent, digest: ${digestKey(secret)} }] } }]
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
models: { "claude-*": [up/model], "gpt-*": [up/model], "gemini-*": [up/model] }
`,
      });
      const cwd = await mkdtemp(join(tmpdir(), "tollgate-mcp-agent-"));
      try {
        const script = await installed(agent.package);
        const { args, env } = await agent.start({ script, cwd, url: gateway.url });
        const { program } = agent;
        const command = { args, env: { HOME: cwd, ...env }, cwd, ...(program && { program }) };
        const ended = await run(command, RUN_MS);
        const calls = server.received.filter(({ method }) => method === "tools/call");
        expect([calls.map(({ body }) => body["params"]["arguments"]), ended.err]).toEqual([
          [{ message: "pong" }],
          ended.err,
        ]);
        expect(ended.out).toContain("Done.");
        report.push(`${name} ${agent.package.version} | ${revision} | called a tool`);
      } finally {
        await rm(cwd, { recursive: true, force: true });
      }
    },
    RUN_MS + 60_000,
  );
});
