import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Check, UpstreamRequest } from "tollgate/testing";
import type { Usage } from "tollgate/plugin";
import type { Played, Stage } from "../stage.ts";
import { writing, type Agent } from "./agent.ts";
import { agentChecks } from "./checks.ts";
import { ALL } from "./plays.ts";

const HERE = import.meta.dirname;

describe("the list of agents", () => {
  it("pins each client to an exact version", () => {
    for (const { package: name, version } of ALL) expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it("pins each Python dependency to an exact version and names no host", () => {
    const folder = join(HERE, "requirements");
    for (const file of readdirSync(folder))
      for (const line of readFileSync(join(folder, file), "utf8").trimEnd().split("\n"))
        expect(line, file).toMatch(/^[\w.-]+==[\w.+]+$/);
  });

  it("equals the list on the page, with the same versions", () => {
    const page = readFileSync(join(HERE, "../../../docs/guides/clients.md"), "utf8");
    for (const { package: name, version, protocol } of ALL)
      expect(page).toContain(`| ${name} | ${version} | ${protocol} |`);
  });
});

/** An agent whose run is described by the test. */
const agent: Agent = {
  name: "fake",
  package: "fake",
  version: "1.0.0",
  users: "none",
  protocol: "chat-completions",
  plain: false,
  install: async () => "",
  command: async () => ({ args: [], env: {}, cwd: "" }),
  writes: writing("write", "path", "text"),
};

interface Planted {
  readonly out?: (said: string) => string;
  readonly code?: number;
  readonly usage?: (usage: Usage) => Usage;
  readonly status?: number;
}

/**
 * A client that sends one request and prints the text of the response, with an optional planted
 * defect.
 */
function stageWith({
  out = (said) => said,
  code = 0,
  usage = (same) => same,
  status = 200,
}: Planted): Stage {
  return {
    url: "",
    key: "",
    folder: async () => "",
    async play(script) {
      const body = { stream: true, tools: [{ function: { name: "read" } }] };
      const asked = {
        number: 1,
        path: "/v1/chat/completions",
        json: () => body,
      } as UpstreamRequest;
      const answer = script(asked);
      const words = "output" in answer ? answer.output : undefined;
      const text = words?.items.map((item) => ("text" in item ? item.text : "")).join("") ?? "";
      const billed = words?.usage ? usage(words.usage) : {};
      const entry = { kind: "settle", state: "exact", usage: billed, labels: {} };
      return {
        code,
        out: out(text),
        err: "",
        asked: [asked],
        served: [{ path: asked.path, status }],
        complaints: [],
        settled: [entry],
      } as unknown as Played;
    },
    async [Symbol.asyncDispose]() {},
  };
}

function checkOf(name: string, planted: Planted, faults: Agent["faults"] = {}): Check {
  const checks = agentChecks({ ...agent, faults }, "", stageWith(planted));
  return checks.find((check) => check.name === `fake: ${name}`)!;
}

describe("the checks of agents", () => {
  it("pass a client without defects", async () => {
    await checkOf("streamed answer", {}).run();
  });

  it.each<[what: string, check: string, planted: Planted, message: RegExp]>([
    ["a lost character", "streamed answer", { out: (said) => said.replace("🚲", "?") }, /missing/],
    ["an exit code", "streamed answer", { code: 1 }, /exit code 1/],
    [
      "one token less in the ledger",
      "streamed answer",
      { usage: (of) => ({ ...of, output: of["output"]! - 1 }) },
      /ledger differs/,
    ],
    ["a refused request", "streamed answer", { status: 400 }, /chat\/completions/],
    ["a tool that is not declared", "tool call", {}, /no request declares write/],
    ["an error that is not shown", "provider error", { code: 1 }, /does not show the error/],
    ["half an answer", "broken stream", {}, /half an answer/],
  ])("find %s", async (_, check, planted, message) => {
    await expect(checkOf(check, planted).run()).rejects.toThrow(message);
  });

  it("accept a known failure, and report one that no longer occurs", async () => {
    const faults = { "streamed answer": "It loses characters." };
    await checkOf("streamed answer", { code: 1 }, faults).run();
    await expect(checkOf("streamed answer", {}, faults).run()).rejects.toThrow(/is gone/);
  });
});
