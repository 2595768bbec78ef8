// An isolated plugin in a running gateway: allowed and forbidden actions, and effects on others
// when it fails.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { childrenOf, waitForExit } from "../../kit/process/processes.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { processCpuMs } from "../../kit/process/cpu-time.ts";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { until } from "../../kit/wait.ts";
import { GUARD } from "./broken-plugins.ts";
import { everyNth } from "../../kit/law-effort.ts";

const YAML = (workers: number) => `workers: ${workers}
frontends: [chat-completions]
middleware:
  - auth
  - { use: ./guard.ts, isolate: child, timeout: 20s, for: { models: ["demo/*"] }, with: { mask: gateway } }
providers:
  demo: { use: demo }
  other: { use: demo }
  slow: { use: openai-compatible, with: { base_url: "\${env:SLOW:-http://127.0.0.1:9}/v1", api_key: none } }
`;

/** An undeclared resource, and one that no plugin may access. */
const UNNAMED =
  "unnamed-env unnamed-file unnamed-file-beside unnamed-file-itself private-host metadata-host control-socket " +
  "ask-where-there-is-none ask-for-another";
const FILES = { "guard.ts": GUARD, "named.txt": "named", "unnamed.txt": "canary" };

interface Heard {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function ask(
  at: Daemon,
  words: string,
  model = "demo/echo",
  more: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
  query = "",
): Promise<Heard> {
  const answer = await fetch(`${at.url}/v1/chat/completions${query}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${at.key}`, ...more },
    body: JSON.stringify({ model, messages: [{ role: "user", content: words }] }),
    ...(signal && { signal }),
  });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

/** PID of the guard's process. */
const bornOf = (at: Daemon): Promise<unknown> => at.ask("middleware.guard/born");

const outsideOf = (at: Daemon): number[] =>
  childrenOf(at.pid).flatMap(({ pid, args }) => (args.includes("plugin-process") ? [pid] : []));

/** Other requests run during this time, and none may fail. */
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

describe("an isolated plugin", () => {
  let at: Daemon;
  let slow: TestUpstream;
  beforeAll(async () => {
    slow = await startUpstream({
      ...scriptedModel(say("Slow"), ["model"]),
      "POST /v1/chat/completions": { body: "", truncation: { after: "nothing", how: "stall" } },
    });
    at = await startDaemon({
      yaml: YAML(1),
      files: FILES,
      env: { SECRET: "s", NAMED: "yes", SLOW: slow.url },
    });
  });
  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await slow.close();
  });

  it("responds, in its own process", async () => {
    const { status, text } = await ask(at, "my gateway");
    expect([status, text]).toEqual([200, expect.stringContaining("my ***")]);
    const [child] = childrenOf(at.pid).filter(({ args }) => args.includes("outside"));
    expect(child?.pid).not.toBe(at.pid);
  });

  it("can reject, and its notes and subrequests are recorded", async () => {
    const refused = await ask(at, "do:refuse;");
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining("Not these words."),
    ]);
    expect((await ask(at, "do:label;")).headers.get("x-guard")).toBe("was here");
  });

  it("receives the query, or none", async () => {
    const seen = async (query: string) =>
      (await ask(at, "do:query;", "demo/echo", {}, undefined, query)).headers.get("x-query");
    expect(await Promise.all(["?b=1&a=%20x", "??a=2", ""].map(seen))).toEqual([
      "[ x]",
      "[2]",
      "[null]",
    ]);
  });

  it("accesses only what it declares, and calls models like a client", async () => {
    expect((await ask(at, "do:env;")).headers.get("x-env")).toBe("NAMEDyes");
    expect((await ask(at, "do:named-file;")).headers.get("x-file")).toBe("namednamed");
    const judged = await ask(at, "do:ask;");
    const heard = ["x-judge", "x-judge-calls", "x-judge-cost"].map((h) => judged.headers.get(h));
    expect([judged.status, ...heard]).toEqual([200, "May it?", "1", "bigint"]);
    // Its own hooks do not see its subrequests.
    expect((await ask(at, "do:ask-itself;")).status).toBe(200);
    await ask(at, "hello", "demo/echo", { "x-do": "ask-at-the-end" });
    await at.line(({ msg }) => msg === "asked beside an answer");
  });

  it("replaces fields of the client, and its other hooks see them", async () => {
    const more = { "x-edit": "put there" };
    expect((await ask(at, "hello", "demo/echo", more)).text).toContain('"content":"put there"');
    expect((await ask(at, "hello", "demo/echo", { "x-edit": "do:refuse;" })).status).toBe(403);
  });

  it("is notified when its client disconnects during its work", async () => {
    const away = new AbortController();
    const asked = ask(at, "do:wait-for-its-client;", "demo/echo", {}, away.signal).catch(() => {});
    await at.line(({ msg }) => msg === "it waits for its client");
    away.abort();
    await at.line(({ msg }) => msg === "its client has gone");
    await asked;
  });

  it("can cancel its subrequest", async () => {
    const { status } = await ask(at, "do:ask-and-give-up;");
    expect(status).toBe(500);
    const posted = slow.requests.find(({ method }) => method === "POST")!;
    await posted.whenDone;
    expect(posted.state).toBe("aborted");
  });

  it.each([
    "read-a-file",
    "write-a-file",
    "dial-out",
    "fork",
    "thread",
    "signals",
    ...UNNAMED.split(" "),
  ])("has no permission to %s", async (way) => {
    const born = await bornOf(at);
    const { status, text } = await beside(at, () => ask(at, `do:${way};`));
    expect([status, text]).toEqual([
      500,
      expect.stringMatching(/middleware\.guard failed|not_declared/),
    ]);
    expect(text).not.toContain("canary");
    // Its own process rejects it and continues.
    expect(await bornOf(at)).toBe(born);
  });

  const BREAKING = ["loop", "leak", "leak-bytes", "exit", "abort", "throw", "unhandled"];
  it.each(everyNth(3, BREAKING, 0))(
    "%s fails only its own request, and the plugin is restarted",
    async (way) => {
      await beside(at, () => ask(at, `do:${way};`));
      // It may be unavailable a moment longer.
      await until(async () => (await ask(at, "hello")).status === 200);
    },
  );
});

describe("the child processes of a gateway", () => {
  it("are replaced by a reload, and the old ones end", async () => {
    await using at = await startDaemon({ yaml: YAML(1), files: FILES });
    const before = await bornOf(at);
    const old = outsideOf(at);
    await at.write(YAML(1).replace("mask: gateway", "mask: never"));
    await at.line(({ msg }) => msg === "reloaded");
    expect((await ask(at, "my gateway")).text).toContain("my gateway");
    expect(await bornOf(at)).not.toBe(before);
    for (const pid of old) await waitForExit(pid);
  });

  it("end when the gateway is killed, including one in an endless loop", async () => {
    await using at = await startDaemon({ yaml: YAML(1), files: FILES });
    const all = outsideOf(at);
    expect(all.length).toBeGreaterThan(0);
    void ask(at, "do:loop;").catch(() => {});
    // Its CPU time grows as long as it loops.
    const before = all.map(processCpuMs);
    await until(() => all.some((pid, i) => processCpuMs(pid) > before[i]! + 200));
    process.kill(at.pid, "SIGKILL");
    for (const pid of all) await waitForExit(pid);
  });
});
