// A gateway moves from its file to PostgreSQL and back, as an operator does it: rows while it
// serves, the rest in a short pause, and then with the same keys, budgets, and sums.
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { main } from "../../../src/cli/main.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import {
  hasPostgres,
  postgresStoreYaml,
  startPostgres,
  type Postgres,
} from "../../kit/database/postgres.ts";

const PLAIN = `frontends: [chat-completions]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-user] } }]
providers: { demo: { use: demo } }
`;
const IN_FILE = `store: { use: sqlite }\n${PLAIN}`;

async function tollgate(...words: string[]): Promise<{ code: number; out: any; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const spies = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, "write"));
  spies[0]!.mockImplementation((chunk) => (out.push(String(chunk)), true));
  spies[1]!.mockImplementation((chunk) => (err.push(String(chunk)), true));
  try {
    const code = await main([...words, "--json"], false);
    return { code, out: JSON.parse(out.join("") || "null"), err: err.join("") };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

async function ask(gateway: Daemon, key: string, user: string): Promise<number> {
  const res = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      "x-user": user,
    },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  });
  await res.text();
  return res.status;
}

describe.skipIf(!hasPostgres())("tollgate store copy", () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres?.[Symbol.asyncDispose]());

  it("moves a gateway to PostgreSQL and back: nothing is lost, and each chain refers to the previous one", async () => {
    const url = await postgres.database();
    const shared = `store: ${postgresStoreYaml(url)}\n${PLAIN}`;
    const first = await startDaemon({ yaml: IN_FILE, files: { "fleet.yaml": shared } });
    const { dir, key } = first;
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const fleet = `${dir}/fleet.yaml`;
    const limits = ["requests=8/month"];
    const { secret } = (await first.ask("keys.create", { name: "eight", limits })) as {
      secret: string;
    };
    for (let i = 0; i < 3; i++) expect(await ask(first, secret, "ann")).toBe(200);

    const copy = ["store", "copy", "-c", first.file, "--to", fleet];
    const live = await tollgate(...copy);
    expect(live).toMatchObject({ code: 0, out: { done: false, rows: 6 } });
    expect(live.out.openBy).toMatch(/in use/);
    for (let i = 0; i < 2; i++) expect(await ask(first, secret, "bob")).toBe(200);
    const sums = await first.ask("ledger.totals", { by: ["key", "label"] });
    const before = (await first.ask("ledger.verify", {})) as { head: { hash: string } };
    expect(await first.stop()).toBe(0);
    const moved = await tollgate(...copy);
    expect(moved).toMatchObject({ code: 0, out: { done: true, rows: 4, calls: 5 } });
    expect(moved.out.from).toBe(before.head.hash);
    const again = await tollgate(...copy);
    expect(again).toMatchObject({ code: 1, out: { error: { code: "not_empty" } } });

    const second = await startDaemon({ yaml: shared, dir });
    expect(await second.ask("ledger.totals", { by: ["key", "label"] })).toEqual(sums);
    expect(await second.ask("ledger.verify", { hash: before.head.hash })).toMatchObject({
      problems: [],
      containsHash: true,
    });
    for (const expected of [200, 200, 200, 429])
      expect(await ask(second, secret, "ann")).toBe(expected);
    expect(await ask(second, key, "ann")).toBe(200);
    const there = await second.ask("ledger.totals", { by: ["key", "label"] });
    const head = (await second.ask("ledger.verify", {})) as { head: { hash: string } };
    const busy = await tollgate(
      "store",
      "copy",
      "-c",
      first.file,
      "--from",
      fleet,
      "--to",
      `${dir}/back.yaml`,
    );
    expect(busy).toMatchObject({ code: 1 });
    await second.write(IN_FILE.replace("use: sqlite", "use: sqlite, with: { file: back.db }"));
    const back = ["store", "copy", "-c", first.file, "--from", fleet, "--to", first.file];
    const running = await tollgate(...back);
    expect(running).toMatchObject({ code: 0, out: { done: false } });
    expect(running.out.openBy).toMatch(/Gateways are still using the database \(1\)/);
    expect(await second.stop()).toBe(0);
    expect(await tollgate(...back)).toMatchObject({
      code: 0,
      out: { done: true, from: head.head.hash },
    });
    await using third = await startDaemon({
      yaml: IN_FILE.replace("use: sqlite", "use: sqlite, with: { file: back.db }"),
      dir,
    });
    expect(await third.ask("ledger.totals", { by: ["key", "label"] })).toEqual(there);
    expect(await third.ask("ledger.verify", { hash: head.head.hash })).toMatchObject({
      problems: [],
      containsHash: true,
    });
    expect(await ask(third, secret, "ann")).toBe(429);
  });

  it("reports missing options, and accepts a store by its name with its options", async () => {
    const url = await postgres.database();
    await using gateway = await startDaemon({ yaml: IN_FILE });
    const copy = (...words: string[]) => tollgate("store", "copy", "-c", gateway.file, ...words);
    expect(await copy()).toMatchObject({ code: 1, out: { error: { code: "usage" } } });
    expect(await copy("--to", "postgres")).toMatchObject({ code: 1 });
    expect(await copy("--to", "memory")).toMatchObject({
      code: 1,
      out: { error: { code: "store_cannot" } },
    });
    const named = await copy(
      "--from",
      "sqlite",
      "--to",
      "postgres",
      "--to-with",
      JSON.stringify({ url }),
    );
    expect(named).toMatchObject({ code: 0, out: { done: false, rows: 0 } });
  });
});
