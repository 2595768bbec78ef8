// Coding clients from npm, in their modes without a terminal.
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { installed } from "../install.ts";
import { writing, type Agent, type AgentPrompt } from "./agent.ts";

/** Writes a JSON file below the client's home. */
async function config(of: AgentPrompt, path: string, value: unknown): Promise<void> {
  const file = join(of.cwd, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, JSON.stringify(value));
}

const home = ({ cwd }: AgentPrompt) => ({
  HOME: cwd,
  XDG_CONFIG_HOME: join(cwd, ".config"),
  XDG_DATA_HOME: join(cwd, ".local/share"),
  XDG_STATE_HOME: join(cwd, ".local/state"),
  XDG_CACHE_HOME: join(cwd, ".cache"),
  DO_NOT_TRACK: "1",
});

const pi: Agent = {
  name: "pi",
  package: "@earendil-works/pi-coding-agent",
  version: "1.6.0",
  users: "7,066,523 npm downloads per month (as @mariozechner/pi-coding-agent)",
  protocol: "chat-completions",
  plain: false,
  install: () => installed({ name: pi.package, version: pi.version, main: "dist/bundle/cli.js" }),
  async command(of) {
    const models = [{ id: of.model }];
    const gateway = {
      baseUrl: `${of.url}/v1`,
      api: "openai-completions",
      apiKey: "$GW_KEY",
      models,
    };
    await config(of, ".pi/agent/models.json", { providers: { gateway } });
    return {
      args: [of.installed, "--print", "--provider", "gateway", "--model", of.model, of.prompt],
      env: { ...home(of), GW_KEY: of.key, PI_OFFLINE: "1" },
      cwd: of.cwd,
    };
  },
  writes: writing("write", "path", "content"),
};

const opencode: Agent = {
  name: "opencode",
  package: "opencode-ai",
  version: "1.18.33",
  users: "1,671,942 npm downloads per month",
  protocol: "chat-completions",
  plain: false,
  install: () =>
    installed({
      name: opencode.package,
      version: opencode.version,
      main: `../opencode-${process.platform}-${process.arch}/bin/opencode`,
    }),
  async command(of) {
    await config(of, "opencode.json", {
      autoupdate: false,
      share: "disabled",
      model: `gateway/${of.model}`,
      small_model: `gateway/${of.model}`,
      enabled_providers: ["gateway"],
      permission: { "*": "allow" },
      provider: {
        gateway: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: `${of.url}/v1`, apiKey: "{env:GW_KEY}" },
          models: { [of.model]: { tool_call: true, limit: { context: 100_000, output: 8000 } } },
        },
      },
    });
    return {
      program: of.installed,
      args: ["run", of.prompt],
      env: {
        ...home(of),
        GW_KEY: of.key,
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      },
      cwd: of.cwd,
    };
  },
  writes: writing("write", "filePath", "content"),
};

const copilot: Agent = {
  name: "copilot",
  package: "@github/copilot",
  version: "1.0.102",
  users: "1,108,746 npm downloads per month",
  protocol: "responses",
  plain: true,
  install: () =>
    installed({ name: copilot.package, version: copilot.version, main: "npm-loader.js" }),
  command: async (of) => ({
    args: [
      of.installed,
      "--silent",
      "--allow-all-tools",
      "--allow-all-paths",
      "--no-color",
      "--stream",
      of.stream ? "on" : "off",
      "--prompt",
      of.prompt,
    ],
    env: {
      ...home(of),
      COPILOT_OFFLINE: "true",
      COPILOT_AUTO_UPDATE: "false",
      COPILOT_MODEL: of.model,
      COPILOT_PROVIDER_BASE_URL: `${of.url}/v1`,
      COPILOT_PROVIDER_API_KEY: of.key,
      COPILOT_PROVIDER_WIRE_API: "responses",
    },
    cwd: of.cwd,
  }),
  writes: writing("create", "path", "file_text"),
};

const cline: Agent = {
  name: "cline",
  package: "cline",
  version: "3.0.65",
  users: "781,574 npm downloads per month",
  protocol: "chat-completions",
  plain: false,
  install: () => installed({ name: cline.package, version: cline.version, main: "bin/cline" }),
  async command(of) {
    await config(of, ".cline/data/settings/global-settings.json", {
      telemetryOptOut: true,
      autoUpdateEnabled: false,
    });
    await config(of, ".cline/data/settings/providers.json", {
      version: 1,
      lastUsedProvider: "openai-compatible",
      providers: {
        "openai-compatible": {
          settings: {
            provider: "openai-compatible",
            apiKey: of.key,
            model: of.model,
            baseUrl: `${of.url}/v1`,
          },
          updatedAt: "2026-11-28T00:00:00.000Z",
          tokenSource: "manual",
        },
      },
    });
    return {
      args: [
        of.installed,
        "--json",
        "--provider",
        "openai-compatible",
        "--model",
        of.model,
        of.prompt,
      ],
      env: {
        ...home(of),
        CLINE_NO_AUTO_UPDATE: "1",
        // Without a hub, which would be a process that serves later runs.
        CLINE_SESSION_BACKEND_MODE: "local",
      },
      cwd: of.cwd,
    };
  },
  writes: writing("editor", "path", "new_text"),
};

const qwen: Agent = {
  name: "qwen",
  package: "@qwen-code/qwen-code",
  version: "0.24.4",
  users: "357,228 npm downloads per month",
  protocol: "chat-completions",
  plain: false,
  install: () => installed({ name: qwen.package, version: qwen.version, main: "cli-entry.js" }),
  async command(of) {
    await config(of, ".qwen/settings.json", {
      general: { disableAutoUpdate: true, disableUpdateNag: true },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      security: { auth: { selectedType: "openai" } },
    });
    return {
      args: [of.installed, "--yolo", "--model", of.model, of.prompt],
      env: {
        ...home(of),
        OPENAI_BASE_URL: `${of.url}/v1`,
        OPENAI_API_KEY: of.key,
        OPENAI_MODEL: of.model,
      },
      cwd: of.cwd,
    };
  },
  writes: writing("write_file", "file_path", "content"),
};

export const CODING: readonly Agent[] = [pi, opencode, copilot, cline, qwen];
