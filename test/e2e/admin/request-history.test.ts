// The request history: a request is found by its ID, its client's ID, or an attempt, including
// rejected ones, in any process. A reader that follows it may be slow, or leave.
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RequestRecord } from "tollgate/plugin";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import type {
  FoundRequests,
  RecentStats,
  RequestPage,
} from "../../../src/admin/commands/request-commands.ts";
import { getFault } from "../../../src/model/error.ts";
import { runCliInProcess, runTollgate } from "../../kit/process/command-line.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { spawnTollgate } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";

const PROMPT = "a word that is kept nowhere";

describe("with two processes", () => {
  let up: TestUpstream;
  let at: Daemon;
  let other: { id: string; secret: string };
  beforeAll(async () => {
    const hello = say("Hello").usage({ input: 10, output: 2 });
    up = await startUpstream(scriptedModel(hello));
    up.setRoutes({
      "POST /v1/chat/completions": (asked) =>
        String(asked.json().model).startsWith("sick")
          ? { status: 503, headers: { "content-type": "application/json" }, body: '{"error":{}}' }
          : hello.toResponse(asked),
    });
    at = await startDaemon({
      yaml: `workers: 2
frontends: [chat-completions, messages]
middleware: [zdr, auth, limits, usage]
bounds: { connections: 60 }
providers:
  up:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", api_key: k }
    models:
      good: { price: { input: 1, output: 5 } }
models:
  fast: { candidates: [up/sick, up/good] }
`,
    });
    const made = (await at.ask("keys.create", {
      name: "laptop",
      labels: { team: "web" },
      limits: ["requests=2/day"],
    })) as unknown as { secret: string; key: { id: string } };
    other = { id: made.key.id, secret: made.secret };
  });
  afterAll(async () => {
    await at?.[Symbol.asyncDispose]();
    await up?.close();
  });

  const ask = async (model: string, more: Record<string, string> = {}, key = at.key) => {
    const res = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${key}`,
        connection: "close",
        ...more,
      },
      body: JSON.stringify({ model, messages: [{ role: "user", content: PROMPT }] }),
    });
    await res.arrayBuffer();
    return { status: res.status, id: res.headers.get("x-request-id")! };
  };
  /** The command line in this process. */
  const run = (...args: string[]) => runCliInProcess([...args, "-c", at.file]);
  const show = async (id: string) =>
    (await at.ask("requests.show", { id })) as unknown as FoundRequests;
  const list = async (which = {}) =>
    (await at.ask("requests.list", which)) as unknown as RequestPage;

  it("a request with a fallback is shown by its own ID, its client's ID, and an attempt's ID", async () => {
    const { status, id } = await ask("fast", { "x-request-id": "client-7" });
    expect(status).toBe(200);
    const found = await show(id);
    expect(found.requests).toMatchObject([
      {
        id,
        record: {
          id,
          clientRequestId: "client-7",
          model: "fast",
          alias: "fast",
          served: "up/good",
          status: 200,
          outcome: "ok",
          keyName: "first",
          calls: [
            { n: 1, model: "sick", fault: { kind: "overloaded" } },
            { n: 2, model: "good", usage: { input: 10, output: 2 }, costNano: "20000" },
          ],
        },
        charges: [
          { attempt: `${id}.1`, state: "void", keyName: "first" },
          {
            attempt: `${id}.2`,
            outcome: "ok",
            costNano: "20000",
            priceLines: [
              { unit: "input", count: 10, nano: "10000" },
              { unit: "output", count: 2, nano: "10000" },
            ],
          },
        ],
      },
    ]);
    expect(found.requests[0]!.charges[1]!.rowNumbers).toHaveLength(2);
    for (const one of ["client-7", `${id}.2`])
      expect((await show(one)).requests.map((each) => each.id)).toEqual([id]);
    expect(JSON.stringify(found)).not.toContain(PROMPT);

    const { code, out } = await run("request", id);
    expect(code).toBe(0);
    for (const words of [
      /client request ID +client-7/,
      /requested +fast,/,
      /client +first \(/,
      /attempt 1 +up\/sick.*overloaded/,
      /attempt 2 +up\/good.*ok/,
      /10 in, 2 out, \$0\.00002, exact/,
      /10 input: \$0\.00001/,
      /rows \d+, \d+, price [0-9a-f]+/,
    ])
      expect(out).toMatch(words);
  });

  it("rejected requests are found by the ID in the response, including those rejected before routing", async () => {
    const spent = async () => {
      for (;;) {
        const one = await ask("up/good", {}, other.secret);
        if (one.status !== 200) return one;
      }
    };
    const refused = [
      [await ask("up/good", {}, "tg_wrong"), 401, "unauthenticated"],
      [await ask("nowhere/at-all"), 404, "not_found"],
      [await ask("up/sick"), 503, "overloaded"],
      [await spent(), 429, "rate_limited"],
    ] as const;
    for (const [{ id, status }, expected, kind] of refused) {
      expect(status).toBe(expected);
      expect((await show(id)).requests).toMatchObject([
        { id, record: { status, fault: { kind } } },
      ]);
    }
    const malformed = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${at.key}`, "content-type": "application/json" },
      body: "{",
    });
    const nowhere = await fetch(`${at.url}/v1/nowhere`);
    const door = [
      [malformed, 400, { record: { frontend: "chat-completions" } }],
      [nowhere, 404, { record: { code: "unknown_path", method: "GET", listener: "public" } }],
    ] as const;
    for (const [res, status, said] of door) {
      await res.arrayBuffer();
      const id = res.headers.get("x-request-id")!;
      expect((await show(id)).requests).toMatchObject([{ id, ...said, charges: [] }]);
      expect(res.status).toBe(status);
    }
    const id = await oneTooMany(at);
    expect((await show(id)).requests).toMatchObject([
      { id, record: { status: 503, code: "too_many_connections" } },
    ]);
    expect((await run("request", id)).out).toMatch(/503 too_many_connections/);
  });

  it("a private request has no labels, and others have them", async () => {
    const made = (await at.ask("keys.create", { labels: { team: "ops" } })) as unknown as {
      secret: string;
    };
    const open = await ask("up/good", {}, made.secret);
    const closed = await ask("up/good", { "service-zdr": "true" }, made.secret);
    const told = async ({ id }: { id: string }) => {
      const { privacy, labels } = (await show(id)).requests[0]!.record as RequestRecord;
      return [privacy, labels];
    };
    expect(await told(open)).toEqual(["off", { team: "ops" }]);
    expect(await told(closed)).toEqual(["required", {}]);
  });

  it("an unknown request is an error that states how far the history reaches", async () => {
    const error = await show("no-such-id").then(
      () => undefined,
      (problem: unknown) => getFault(problem),
    );
    expect(error).toMatchObject({
      code: "no_such_request",
      details: { since: expect.any(Number) },
    });
    expect((error!.details as { since: number }).since).toBeGreaterThan(0);
    const { code, out } = await run("request", "no-such-id", "--json");
    expect([code, JSON.parse(out)]).toMatchObject([1, { error: { code: "no_such_request" } }]);
  });

  it("requests are listed as they end, filtered, in pages that wait for new ones", async () => {
    const ids = async (which: object) => (await list(which)).items.map(({ id }) => id);
    const failed = await list({ failed: true });
    expect(failed.items.length).toBeGreaterThanOrEqual(7);
    for (const { status } of failed.items) expect(status).toBeGreaterThanOrEqual(400);
    const theirs = await list({ key: "laptop" });
    expect(theirs.items.map((item) => "key" in item && item.key)).toEqual(
      Array.from({ length: theirs.items.length }, () => other.id),
    );
    expect(await ids({ key: other.id })).toEqual(theirs.items.map(({ id }) => id));
    expect((await list({ model: "up/g*" })).items.length).toBeGreaterThanOrEqual(4);
    expect(await ids({ model: "fast" })).toHaveLength(1);
    const wrong = await list({ key: "laptp" }).catch((problem: unknown) => getFault(problem));
    expect(wrong).toMatchObject({
      code: "no_such_key",
      message: expect.stringContaining("laptop"),
    });

    const { next } = await list();
    const waiting = list({ after: next, waitMs: 20_000 });
    const { id } = await ask("up/good");
    expect((await waiting).items.map((item) => item.id)).toEqual([id]);
    expect((await list({ after: next, waitMs: 1 })).next).toBe(next + 1);
    expect((await list({ after: next + 1, waitMs: 1 })).items).toEqual([]);
  });

  it("tail follows until Ctrl-C, and ends when the reader of its pipe ends", async () => {
    let heard = "";
    const tail = runTollgate(at, ["tail", "--failed", "--key", "first"], (out) => {
      heard = out;
      return out.includes("nowhere/new");
    });
    await until(() => heard.includes("nowhere/at-all"));
    const { id } = await ask("nowhere/new");
    const { code, out } = await tail;
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`${id}  404 +[\\d.]+ m?s  first  nowhere/new  not_found`));
    expect(out).not.toContain("up/good  ");

    const piped = spawnTollgate({ cwd: at.dir, args: ["tail", "--json", "-c", at.file] });
    const ended = new Promise((resolve) => piped.once("exit", (exit) => resolve(exit)));
    await new Promise((resolve) => piped.stdout.once("data", resolve));
    piped.stdout.destroy();
    let over = false;
    void ended.then(() => (over = true));
    await until(async () => (await ask("up/good"), over));
    expect(await ended).toBe(0);
  });

  it("top shows spend, rate, and errors of all processes, once, repeatedly, or as JSON", async () => {
    const { total } = (await at.ask("ledger.totals", { by: ["model"] })) as unknown as {
      total: { costNano: string };
    };
    const look = async () => {
      const { code, out } = await run("top", "--once", "--json", "--window", "1h");
      expect(code).toBe(0);
      return JSON.parse(out) as RecentStats;
    };
    // Counts are up to 0.2 s late.
    let now = await look();
    await until(async () => BigInt((now = await look()).total!.costNano) >= BigInt(total.costNano));
    expect(now.total!.costNano).toBe(total.costNano);
    expect(now.keys.map(({ keyName }) => keyName)).toEqual(
      expect.arrayContaining(["first", "laptop"]),
    );
    await until(async () => {
      await ask("up/sick");
      return (await look()).cooldowns.some(({ provider }) => provider === "up");
    });
    const again = await runTollgate(at, ["top", "--interval", "200ms", "--window", "1h"], (text) =>
      /in flight[^]*in flight/.test(text),
    );
    expect(again.code).toBe(0);
    expect(again.out).toMatch(/up\/good +\d+ /);
    expect(again.out).toMatch(/in cooldown  up default/);
    expect(again.out).not.toContain("\u001b");
    expect((await run("top", "--window", "2d")).code).toBe(1);
  });

  it("after a restart, the ledger has the calls, and counts continue", async () => {
    const { id } = await ask("up/good");
    const turned = await ask("up/good", {}, "tg_wrong");
    // Both are in the history, and counted.
    for (const one of [id, turned.id]) expect((await show(one)).requests[0]!.record).toBeDefined();
    const before = (await at.ask("requests.series", { step: "hour" })) as { rows: object[] };
    let heard = "";
    const tail = runTollgate(at, ["tail"], (out) => ((heard = out), false));
    await until(() => heard.includes(turned.id));
    expect(await at.stop()).toBe(0);
    expect(await tail).toMatchObject({
      code: 1,
      err: expect.stringMatching(/ended before it responded|No gateway is running/),
    });
    const alone = await run("request", id);
    expect(alone).toMatchObject({ code: 0, err: expect.stringContaining("No gateway is running") });
    expect(alone.out).toMatch(/attempt 1 +up\/good.*\n.*\n.*10 in, 2 out, \$0\.00002, exact/);
    expect((await run("request", turned.id)).code).toBe(1);
    await using again = await startDaemon({
      dir: at.dir,
      yaml: "providers:\n  demo: { use: demo }\n",
    });
    const since = (await again.ask("requests.series", { step: "hour" })) as { rows: object[] };
    expect(since.rows).toEqual(before.rows);
    const found = (await again.ask("requests.show", { id })) as unknown as FoundRequests;
    expect(found.requests).toMatchObject([{ id, charges: [{ outcome: "ok" }] }]);
  });
});

/** Connects until a connection is rejected, and returns the ID in the error. */
async function oneTooMany({ url }: Daemon): Promise<string> {
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  let told = "";
  try {
    await until(() => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {}).on("data", (bytes) => (told += bytes.toString()));
      sockets.push(socket);
      return told.includes("\r\n\r\n");
    });
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return /^x-request-id: (\S+)\r$/im.exec(told)![1]!;
}
