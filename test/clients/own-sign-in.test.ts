// The newest Claude Code signs in by itself in a pseudo terminal. Its user's settings name the gateway,
// and the person signs in at a real identity provider.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { identify, startSignIn, submit, type SignInSetup } from "../kit/device-flow.ts";
import { until } from "../kit/wait.ts";
import { installed, isInstalled, type Package } from "./install.ts";
import { USAGE } from "./scripts.ts";
import { ALONE, run } from "./stage.ts";

const CLAUDE: Package = {
  name: "@anthropic-ai/claude-code",
  version: "2.1.332",
  main: "cli-wrapper.cjs",
};
const { CI, CLIENTS } = process.env;
const isWanted = CI !== undefined || CLIENTS !== undefined || isInstalled(CLAUDE);

let up: TestUpstream;
let at: SignInSetup;
let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "tollgate-own-sign-in-"));
  up = await startUpstream(scriptedModel(say("Signed in.").usage(USAGE)));
  at = await startSignIn({
    frontends: ["messages", "models", "usage"],
    options: `
      map: { account: groups }
      accounts: { platform: platform, research: research }
      poll_interval_s: 1
      behind_proxy: true
`,
    rest: `
accounts: { platform: {}, research: {} }
providers:
  up: { use: anthropic, with: { base_url: "${up.url}/v1", api_key: sk-upstream } }
models: { "claude-*": ["up/claude-*"] }
`,
  });
}, 60_000);
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
  await rm(home, { recursive: true, force: true });
});

const USER_CODE = /[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}/;
/** Time in which a client has to react to a key. A key that came too early is sent again. */
const REACTION_MS = 3_000;

/** Starts a client in a pseudo terminal. */
function openTerminal(program: string, env: Record<string, string>) {
  const line = `stty cols 160 rows 50; exec '${process.execPath}' '${program}'`;
  const child = spawn("script", ["-qfec", line, "/dev/null"], {
    cwd: home,
    env: { PATH: process.env["PATH"] ?? "", LANG: "C.UTF-8", TERM: "xterm", ...ALONE, ...env },
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
  const screen = () => plain(text);
  return {
    screen,
    /** Waits for a text, and presses keys until another text appears. */
    async answer(question: RegExp, keys: string, answered: RegExp) {
      await until(() => question.test(screen()), screen);
      child.stdin.write(keys);
      const pressing = setInterval(() => child.stdin.write(keys), REACTION_MS);
      try {
        await until(() => answered.test(screen()), screen);
      } finally {
        clearInterval(pressing);
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    },
  };
}

/** Without control sequences. A cursor movement becomes a space. */
const plain = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replace(/\u001B\][^\u0007]*\u0007/g, "").replace(/(?:\u001B\[[0-9;?>]*[a-zA-Z])+/g, " ");

describe.skipIf(!isWanted)(`${CLAUDE.name} ${CLAUDE.version}`, () => {
  it("signs in by itself, its requests are those of the person, and signing out ends the session", async () => {
    const program = await installed(CLAUDE);
    await mkdir(join(home, ".claude"));
    const settings = { forceLoginMethod: "gateway", forceLoginGatewayUrl: at.url };
    await writeFile(join(home, ".claude/settings.json"), JSON.stringify(settings));
    const env = { HOME: home, CLAUDE_GATEWAY_ALLOW_LOOPBACK: "1", DISABLE_AUTOUPDATER: "1" };
    await using terminal = openTerminal(program, env);
    await terminal.answer(/Choose the text style/, "\r", /Gateway URL from your settings file/);
    expect(terminal.screen()).toContain(at.url);
    await terminal.answer(/Enter to connect/, "\r", /No, cancel login/);
    // A gateway that the user's own settings name has to be trusted first.
    await terminal.answer(/No, cancel login/, "\u001B[A", /❯ Yes, trust this gateway/);
    await terminal.answer(/❯ Yes, trust this gateway/, "\r", USER_CODE);
    const [code] = USER_CODE.exec(terminal.screen())!;
    const { browser } = await identify(at, code, "ann");
    expect((await submit(browser, at.url, "/device/approve")).status).toBe(200);
    await terminal.answer(/Yes, continue/, "\u001B[A", /❯\s+Yes, continue/);
    await terminal.answer(/❯\s+Yes, continue/, "\r", /Connected to Cloud gateway/);
    const claude = (...args: string[]) => run({ args: [program, ...args], cwd: home, env });
    const status = await claude("auth", "status");
    expect(JSON.parse(status.out)).toMatchObject({
      loggedIn: true,
      apiProvider: "gateway",
      email: "ann@example.com",
    });
    const asked = await claude("--print", "--model", "claude-sonnet-4-6", "Hi");
    expect([asked.code, asked.out.trim()]).toEqual([0, "Signed in."]);
    const saved = JSON.parse(await readFile(join(home, ".claude/.credentials.json"), "utf8"));
    const token: string = saved.enterpriseGateway.jwt;
    const calls = up.requests.filter(({ path }) => path.startsWith("/v1/messages"));
    expect(calls.length).toBeGreaterThan(0);
    for (const { headers } of calls) {
      expect(headers["x-api-key"]).toBe("sk-upstream");
      expect(JSON.stringify(headers)).not.toContain(token);
    }
    const { keys } = (await at.gateway.ask("keys.show", { id: "claude-gateway:ann" })) as any;
    expect(keys).toMatchObject([{ name: "ann@example.com", account: "platform" }]);
    const usage = () =>
      fetch(`${at.url}/v1/usage`, { headers: { authorization: `Bearer ${token}` } });
    expect((await (await usage()).json()).total.calls).toBeGreaterThan(0);
    expect(JSON.stringify(at.gateway.log)).not.toContain(token);
    // Signing out ends the session at the gateway.
    expect((await claude("auth", "logout")).code).toBe(0);
    await until(async () => (await usage()).status === 401);
  }, 180_000);
});
