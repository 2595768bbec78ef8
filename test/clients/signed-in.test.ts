// The newest Claude Code and Codex, with tokens of the device flow from a real identity provider. The
// flow is run with exactly the requests of Claude Code, whose own sign-in needs a terminal.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request as send, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  call,
  say,
  scriptedModel,
  startUpstream,
  toolResults,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { signIn, startSignIn, type SignInSetup } from "../kit/device-flow.ts";
import { installed, isInstalled, type Package } from "./install.ts";
import { USAGE } from "./scripts.ts";
import { run } from "./stage.ts";

const CLAUDE: Package = {
  name: "@anthropic-ai/claude-code",
  version: "2.1.332",
  main: "cli-wrapper.cjs",
};
const CODEX: Package = { name: "@openai/codex", version: "0.171.0", main: "bin/codex.js" };
const { CI, CLIENTS } = process.env;
const isWanted = (of: Package) => CI !== undefined || CLIENTS !== undefined || isInstalled(of);

const MODEL = "up-messages/claude-sonnet-4-6";
let up: TestUpstream;
let at: SignInSetup;
let home: string;
let script: (asked: UpstreamRequest) => ReturnType<typeof say>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "tollgate-signed-in-"));
  up = await startUpstream({});
  const react = (asked: UpstreamRequest) => script(asked).toResponse(asked);
  up.setRoutes({
    ...scriptedModel(say("")),
    "POST /v1/messages": react,
    "POST /v1/responses": react,
  });
  at = await startSignIn({
    frontends: ["messages", "responses", "models", "usage"],
    options: `
      map: { account: groups }
      accounts: { platform: platform, research: research }
      poll_interval_s: 1
      behind_proxy: true
`,
    rest: `
accounts: { platform: {}, research: {} }
providers:
  up-messages: { use: anthropic, with: { base_url: "${up.url}/v1", api_key: sk-upstream } }
  up-responses:
    use: openai
    with: { base_url: "${up.url}/v1", api_key: sk-upstream }
    models: { model: { protocols: [responses] } }
`,
  });
}, 60_000);
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
  await rm(home, { recursive: true, force: true });
});

const claudeEnv = (cwd: string) => ({
  HOME: cwd,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  DISABLE_TELEMETRY: "1",
  DISABLE_ERROR_REPORTING: "1",
});

/** Records the bodies that a client sends, on its way to the gateway. */
async function recorder(url: string) {
  const bodies: Buffer[] = [];
  const server = createServer((req, res) => {
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => parts.push(part));
    req.on("end", () => {
      const body = Buffer.concat(parts);
      if (/^\/v1\/(messages|responses)(\?|$)/.test(req.url ?? "")) bodies.push(body);
      const { method, headers } = req;
      const out = send(new URL(req.url!, url), { method, headers }, (answer: IncomingMessage) => {
        res.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(res);
      });
      out.on("error", () => res.destroy());
      out.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    bodies,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The provider receives the client's bytes, except for the name of the model. */
function expectEqualBytes(bodies: readonly Buffer[], asked: readonly UpstreamRequest[]): void {
  expect(asked.length).toBeGreaterThan(0);
  const sent = bodies.map((body) => body.toString());
  for (const { body } of asked) {
    const text = String(body);
    const model = /"model":"([^"]+)"/.exec(text)![1]!;
    const own = sent.find((one) => one.replace(/"model":"[^"]+"/, `"model":"${model}"`) === text);
    expect(own !== undefined, text.slice(0, 300)).toBe(true);
  }
}

describe.skipIf(!isWanted(CLAUDE))(`${CLAUDE.name} ${CLAUDE.version}`, () => {
  it("works with the token of the flow: bytes are equal upstream, and the ledger has the person", async () => {
    const program = await installed(CLAUDE);
    const tokens = await signIn(at, "ann");
    const wire = await recorder(at.url);
    const cwd = await mkdtemp(join(home, "claude-"));
    await writeFile(join(cwd, "note.txt"), "Remember the milk.");
    const ask = (words: string, ...more: string[]) =>
      run({
        args: [program, "--print", ...more, "--model", MODEL, words],
        cwd,
        env: {
          ...claudeEnv(cwd),
          ANTHROPIC_BASE_URL: wire.url,
          ANTHROPIC_AUTH_TOKEN: tokens.access_token,
        },
      });
    up.reset();
    script = (asked) =>
      toolResults(asked).length > 0
        ? say("It says: Remember the milk.").usage(USAGE)
        : call("Read", { file_path: join(cwd, "note.txt") }).usage(USAGE);
    const read = await ask("What does the note say?");
    expect([read.code, read.out.trim()]).toEqual([0, "It says: Remember the milk."]);
    script = () => say("Of milk.").usage(USAGE);
    const again = await ask("Of what?", "--continue");
    expect(again.out.trim()).toBe("Of milk.");
    // Another model, a compaction, and an agent that the model starts.
    const other = await ask("And now?", "--continue", "--model", "up-messages/claude-opus-4-6");
    expect([other.code, other.out.trim()]).toEqual([0, "Of milk."]);
    script = () => say("<summary>About milk.</summary>").usage(USAGE);
    expect((await ask("/compact", "--continue")).code).toBe(0);
    script = (asked) =>
      toolResults(asked).length > 0 || String(asked.body).includes("Count the notes.")
        ? say("Done.").usage(USAGE)
        : call("Agent", {
            description: "Count",
            prompt: "Count the notes.",
            subagent_type: "general-purpose",
          }).usage(USAGE);
    const agent = await ask("Start an agent.");
    expect([agent.code, agent.out]).toEqual([0, expect.stringContaining("Done.")]);
    const first = ({ messages }: any) => JSON.stringify(messages[0]);
    const prompts = wire.bodies.map((body) => first(JSON.parse(body.toString())));
    expect(prompts.filter((prompt) => prompt.includes("Count the notes."))).not.toEqual([]);
    const asked = up.requests.filter(({ path }) => path.startsWith("/v1/messages"));
    expectEqualBytes(wire.bodies, asked);
    for (const { headers } of asked) {
      expect(headers["x-api-key"]).toBe("sk-upstream");
      expect(JSON.stringify(headers)).not.toContain(tokens.access_token);
    }
    expect(JSON.stringify(at.gateway.log)).not.toContain(tokens.access_token);
    expect(await callsOf(tokens.access_token)).toBeGreaterThanOrEqual(3);
    wire.close();
  }, 180_000);
});

describe.skipIf(!isWanted(CODEX))(`${CODEX.name} ${CODEX.version}`, () => {
  it("works with the token of the flow: text, a tool, a continued session, and a compaction", async () => {
    const { ask, cwd, tokens, wire } = await startCodex("bob");
    script = (asked) =>
      toolResults(asked).length > 0
        ? say("It says: Remember the milk.").usage(USAGE)
        : call("exec_command", { cmd: `cat '${join(cwd, "note.txt")}'` }).usage(USAGE);
    const read = await ask("What does the note say?");
    expect([read.code, read.out.trim()]).toEqual([0, "It says: Remember the milk."]);
    script = () => say("Of milk.").usage(USAGE);
    expect((await ask("resume", "--last", "Of what?")).out.trim()).toBe("Of milk.");
    // A conversation over its limit is compacted: the model summarizes it, and the next turn has the summary.
    const before = wire.bodies.length;
    script = (asked) =>
      say(isCompaction(asked) ? "A summary of milk." : "Still of milk.").usage({
        input: 5_000,
        output: 5,
      });
    const limit = ["-c", "model_auto_compact_token_limit=1000"];
    const full = await ask(...limit, "resume", "--last", "And now?");
    const compacted = await ask(...limit, "resume", "--last", "And then?");
    expect([full.out.trim(), compacted.out.trim()]).toEqual(["Still of milk.", "Still of milk."]);
    const inputs = wire.bodies
      .slice(before)
      .map((body) => JSON.stringify(JSON.parse(String(body)).input));
    expect(inputs.map((input) => input.includes("CONTEXT CHECKPOINT COMPACTION"))).toEqual([
      false,
      true,
      false,
    ]);
    expect(inputs.at(-1)).toContain("A summary of milk.");
    expectEqualBytes(wire.bodies, responsesAsked());
    expect(await callsOf(tokens.access_token)).toBeGreaterThanOrEqual(3);
    expect(JSON.stringify(at.gateway.log)).not.toContain(tokens.access_token);
    wire.close();
  }, 180_000);

  it("starts an agent, whose requests have the same credential and reach the provider unchanged", async () => {
    const { ask, tokens, wire } = await startCodex("bob");
    const before = await callsOf(tokens.access_token);
    script = (asked) => {
      const text = String(asked.body);
      // The agent's conversation contains only its task.
      if (!text.includes("Start an agent.")) return say("Two notes.").usage(USAGE);
      if (text.includes("Two notes.")) return say("The agent found two notes.").usage(USAGE);
      const [, id] = /agent_id[\\": ]+([0-9a-f-]{36})/.exec(text) ?? [];
      return (
        id === undefined
          ? call("multi_agent_v1__spawn_agent", { message: "Count the notes." })
          : call("multi_agent_v1__wait_agent", { targets: [id], timeout_ms: 30_000 })
      ).usage(USAGE);
    };
    const answer = await ask("Start an agent.");
    expect([answer.code, answer.out.trim()]).toEqual([0, "The agent found two notes."]);
    const asked = responsesAsked();
    const own = asked.filter(({ body }) => !String(body).includes("Start an agent."));
    expect(own).toHaveLength(1);
    expect(String(own[0]!.body)).toContain("Count the notes.");
    expectEqualBytes(wire.bodies, asked);
    for (const { headers } of asked) {
      expect(headers["authorization"]).toBe("Bearer sk-upstream");
      expect(JSON.stringify(headers)).not.toContain(tokens.access_token);
    }
    expect((await callsOf(tokens.access_token)) - before).toBe(asked.length);
    wire.close();
  }, 180_000);
});

/** Signs a person in, and prepares a folder in which Codex uses the gateway with the token. */
async function startCodex(person: string) {
  const program = await installed(CODEX);
  const tokens = await signIn(at, person);
  const wire = await recorder(at.url);
  const cwd = await mkdtemp(join(home, "codex-"));
  await mkdir(join(cwd, ".codex"));
  await mkdir(join(cwd, "tmp"));
  await writeFile(join(cwd, "note.txt"), "Remember the milk.");
  await writeFile(
    join(cwd, ".codex/config.toml"),
    `model = "up-responses/model"
model_provider = "gateway"
check_for_update_on_startup = false
analytics = { enabled = false }
features = { plugins = false }
[model_providers.gateway]
name = "Gateway"
base_url = "${wire.url}/v1"
env_key = "GATEWAY_TOKEN"
wire_api = "responses"
`,
  );
  const ask = (...words: string[]) =>
    run({
      args: [
        program,
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        ...words,
      ],
      cwd,
      env: { HOME: cwd, TMPDIR: join(cwd, "tmp"), GATEWAY_TOKEN: tokens.access_token },
    });
  up.reset();
  return { ask, cwd, tokens, wire };
}

const responsesAsked = (): readonly UpstreamRequest[] =>
  up.requests.filter(({ method, path }) => method === "POST" && path.startsWith("/v1/responses"));

const isCompaction = ({ body }: UpstreamRequest): boolean =>
  String(body).includes("CONTEXT CHECKPOINT COMPACTION");

async function callsOf(token: string): Promise<number> {
  const res = await fetch(`${at.url}/v1/usage`, { headers: { authorization: `Bearer ${token}` } });
  return ((await res.json()) as { total: { calls: number } }).total.calls;
}
