// A guard that is another program, in another language, behind a socket; and configs that isolation
// does not support.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { formatUnreachable } from "../../../src/cli/format/cooldown-output.ts";
import type { Attention } from "../../../src/admin/commands/attention.ts";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import type { GatewayStats } from "../../../src/plugin/gateway-stats.ts";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

const DOCS = join(import.meta.dirname, "../../../docs/plugins");
const PACKAGE = join(import.meta.dirname, "../../../examples/packages/python-words-guard");
const MODULE = "tollgate_words_guard";
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

async function guardAt(socket: string): Promise<ChildProcess> {
  const child = spawn("python3", ["-m", MODULE, socket], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, PYTHONPATH: PACKAGE, PYTHONDONTWRITEBYTECODE: "1" },
  });
  started.push(child);
  await until(() => {
    try {
      return readFileSync(socket).length === 0;
    } catch (error) {
      // It exists, and is not a file.
      return (error as NodeJS.ErrnoException).code === "ENXIO";
    }
  });
  return child;
}

const ask = async (at: Daemon, words: string): Promise<[number, string]> => {
  const answer = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${at.key}` },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: words }] }),
  });
  return [answer.status, await answer.text()];
};

const unreachable = async (at: Daemon): Promise<GatewayStatus["unreachablePlugins"]> =>
  ((await callControl(at.stateDir, "status")) as unknown as GatewayStatus).unreachablePlugins;

const yaml = (entry: string) =>
  `frontends: [chat-completions]\nmiddleware:\n  - auth\n  - ${entry}\nproviders: { demo: { use: demo } }\n`;

describe("a guard in Python", () => {
  it("is the one on its page", () => {
    const page = readFileSync(join(DOCS, "isolation.md"), "utf8");
    const source = readFileSync(join(PACKAGE, `${MODULE}.py`), "utf8");
    expect(page).toContain(source);
    expect(source.split("\n").length).toBeLessThanOrEqual(150);
  });

  it("passes its author's test", () => {
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
    const tests = spawnSync("python3", ["-m", "unittest"], { cwd: PACKAGE, env, encoding: "utf8" });
    expect([tests.status, tests.stderr]).toEqual([0, expect.stringMatching(/Ran 3 tests/)]);
  });

  it("is shown by status while it is unreachable, and requests pass under on_error: continue", async () => {
    const socket = join(mkdtempSync(join(tmpdir(), "guard-")), "guard.sock");
    const guard = await guardAt(socket);
    await using at = await startDaemon({
      yaml: yaml(`{ use: "unix:${socket}", on_error: continue, with: { words: [secret] } }`),
    });
    expect(await unreachable(at)).toEqual([]);
    guard.kill("SIGKILL");
    await until(async () => (await unreachable(at)).length > 0);
    const [gone] = await unreachable(at);
    expect(gone).toMatchObject({ plugin: "middleware.words", requests: "continued" });
    const readings = (await callControl(at.stateDir, "stats")) as unknown as GatewayStats;
    expect(readings.unreachable).toEqual([
      { plugin: "middleware.words", requests: "continued", since: gone!.since, processes: 1 },
    ]);
    expect(formatUnreachable(gone!)).toMatch(
      /^middleware\.words since .*; requests continue without it; next attempt /,
    );
    expect((await ask(at, "a secret word"))[0]).toBe(200);
  });

  it("rejects its words, and is used again after it returns", async () => {
    const socket = join(mkdtempSync(join(tmpdir(), "guard-")), "guard.sock");
    const guard = await guardAt(socket);
    await using at = await startDaemon({
      yaml: yaml(`{ use: "unix:${socket}", with: { words: [Secret] } }`),
    });
    expect((await ask(at, "a word"))[0]).toBe(200);
    expect(await ask(at, "a SECRET word")).toEqual([
      403,
      expect.stringContaining("word that is not allowed"),
    ]);

    guard.kill("SIGKILL");
    await new Promise((resolve) => guard.once("exit", resolve));
    await until(async () => (await unreachable(at)).length > 0);
    const [gone] = await unreachable(at);
    expect(gone).toMatchObject({ plugin: "middleware.words", requests: "rejected" });
    expect(gone!.retryAt).toBeGreaterThan(gone!.since);
    expect(formatUnreachable(gone!)).toMatch(
      /^middleware\.words since .*; requests that pass through it fail with an error; next attempt /,
    );
    const { items } = (await callControl(at.stateDir, "attention")) as unknown as Attention;
    expect(items).toContainEqual(
      expect.objectContaining({ kind: "unreachable", since: gone!.since }),
    );
    // Without it, every request is rejected.
    expect((await ask(at, "a word"))[0]).toBeGreaterThanOrEqual(500);
    rmSync(socket);
    await guardAt(socket);
    await until(async () => (await ask(at, "a word"))[0] === 200);
    expect(await unreachable(at)).toEqual([]);
    expect((await ask(at, "a secret word"))[0]).toBe(403);
  });
});

describe("a config that isolates an unsupported plugin", () => {
  const plugin = (hooks: string) => `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({ api: 1, name: "mine", summary: "One", sends: "nowhere", ${hooks} });
`;
  it.each([
    ["a built-in", "{ use: auth, isolate: child }", "", /4:\d+ .*"auth" is a built-in plugin/s],
    [
      "a word that there is not",
      "{ use: ./mine.ts, isolate: chld }",
      "setup: () => ({})",
      /4:\d+ .*"child"/s,
    ],
    [
      "charge",
      "{ use: ./mine.ts, isolate: child }",
      "setup: () => ({ charge() { return undefined; } })",
      /4:\d+ .*its charge is not supported in an isolated plugin.*inspect/s,
    ],
    [
      "prepare",
      "{ use: ./mine.ts, isolate: child }",
      "setup: () => ({ prepare() {} })",
      /4:\d+ .*its prepare is not supported in an isolated plugin/s,
    ],
    [
      "needs that are functions",
      "{ use: ./mine.ts, isolate: child }",
      "needs: { origins: () => [] }, setup: () => ({})",
      /4:\d+ .*needs\.origins is a function/s,
    ],
    [
      "an import that throws",
      "{ use: ./mine.ts, isolate: child }",
      "setup: () => ({}) }); throw new Error('at once'); ({",
      /4:\d+ .*at once/s,
    ],
    [
      "a socket that nobody answers",
      '{ use: "unix:./none.sock" }',
      "",
      /4:\d+ .*none\.sock: ENOENT/s,
    ],
    ["no socket", '{ use: "unix:guard" }', "", /4:\d+ .*has no socket path/s],
  ])("reports %s, with its line", async (_name, entry, hooks, words) => {
    const began = startDaemon({ yaml: yaml(entry), files: { "mine.ts": plugin(hooks) } });
    await expect(began).rejects.toThrow(words);
  });

  it("names the supported type", async () => {
    const began = startDaemon({
      yaml: "frontends: [{ use: chat-completions, isolate: child }]\nproviders: { demo: { use: demo } }\n",
    });
    await expect(began).rejects.toThrow(/1:\d+ .*"isolate".*only middleware can run outside/s);
  });
});
