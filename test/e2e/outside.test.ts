// A plugin in a process of its own, with the gateway that runs: what it may do, what it may not, and what becomes of the others when it
// breaks.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGateway, type Daemon } from "../kit/daemon.ts";
import { quiet, until } from "../kit/waits.ts";
import { GUARD } from "./outside/broken.ts";

const YAML = (workers: number) => `workers: ${workers}
frontends: [chat-completions]
middleware:
  - auth
  - { use: ./guard.ts, isolate: child, timeout: 20s, for: { models: ["demo/*"] }, with: { mask: gateway } }
providers:
  demo: { use: demo }
  other: { use: demo }
`;

interface Heard {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function ask(at: Daemon, words: string, model = "demo/echo"): Promise<Heard> {
  const answer = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${at.key}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: words }] }),
  });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const pidOf = async (at: Daemon): Promise<number> =>
  ((await at.ask("middleware.guard/pid")) as { pid: number }).pid;

const gone = (pid: number): Promise<void> =>
  until(
    () => !alive(pid),
    () => `the end of ${pid}`,
  );

/** Others ask as long as it lasts, and none of them may fail. */
async function beside<T>(at: Daemon, work: () => Promise<T>): Promise<T> {
  let over = false;
  const failed: string[] = [];
  const others = (async () => {
    while (!over) {
      const { status, text } = await ask(at, "others", "other/echo");
      if (status !== 200) failed.push(`${status} ${text}`);
    }
  })();
  try {
    return await work();
  } finally {
    over = true;
    await others;
    expect(failed).toEqual([]);
  }
}

describe("a plugin in a child", () => {
  let at: Daemon;
  beforeAll(async () => {
    at = await startGateway({ yaml: YAML(1), files: { "guard.ts": GUARD }, env: { SECRET: "s" } });
  });
  afterAll(() => at[Symbol.asyncDispose]());

  it("answers, in a process of its own", async () => {
    const { status, text } = await ask(at, "my gateway");
    expect([status, text]).toEqual([200, expect.stringContaining("my ***")]);
    expect(await pidOf(at)).not.toBe(at.pid);
  });

  it("says its word, and what it notes and sends along is there", async () => {
    const refused = await ask(at, "do:refuse;");
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining("Not these words."),
    ]);
    expect((await ask(at, "do:label;")).headers.get("x-guard")).toBe("was here");
  });

  it.each(["read-a-file", "write-a-file", "dial-out", "fork", "thread"])(
    "has no right to %s",
    async (way) => {
      const pid = await pidOf(at);
      const { status, text } = await beside(at, () => ask(at, `do:${way};`));
      expect([status, text]).toEqual([500, expect.stringContaining("middleware.guard failed")]);
      // It is refused by its own process, which goes on.
      expect(await pidOf(at)).toBe(pid);
    },
  );

  it.each(["loop", "leak", "leak-bytes", "exit", "kill", "throw", "unhandled"])(
    "%s costs its own request alone, and it is there again",
    async (way) => {
      await beside(at, () => ask(at, `do:${way};`));
      // It may be away for a moment more.
      await until(async () => (await ask(at, "hello")).status === 200);
    },
    90_000,
  );
});

describe("the children of a gateway", () => {
  it("are others after a reload, and the old ones end", async () => {
    await using at = await startGateway({ yaml: YAML(1), files: { "guard.ts": GUARD } });
    const before = await pidOf(at);
    await at.write(YAML(1).replace("mask: gateway", "mask: never"));
    await at.line(({ msg }) => msg === "reloaded");
    expect((await ask(at, "my gateway")).text).toContain("my gateway");
    expect(await pidOf(at)).not.toBe(before);
    await gone(before);
  });

  it("are gone when the gateway is killed, one that loops too", async () => {
    await using at = await startGateway({ yaml: YAML(1), files: { "guard.ts": GUARD } });
    const pid = await pidOf(at);
    void ask(at, "do:loop;").catch(() => {});
    await quiet(300);
    process.kill(at.pid, "SIGKILL");
    await gone(pid);
  });
});
