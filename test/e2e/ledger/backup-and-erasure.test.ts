// Operations on a ledger while clients are served: backup, restore, archive, and erasure of
// personal data.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { main } from "../../../src/cli/main.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

const YAML = `frontends: [chat-completions]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-user] } }]
providers: { demo: { use: demo } }`;

let daemon: InProcessGateway;
beforeAll(async () => {
  daemon = await startInProcess({ yaml: YAML });
});
afterAll(() => daemon?.[Symbol.asyncDispose]());

async function tollgate(...words: string[]): Promise<{ code: number; out: any }> {
  const parts: string[] = [];
  const spies = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, "write"));
  spies[0]!.mockImplementation((chunk) => (parts.push(String(chunk)), true));
  spies[1]!.mockImplementation(() => true);
  try {
    const code = await main([...words, "--json"], false);
    return { code, out: JSON.parse(parts.join("") || "null") };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** By the client's view: delivered responses are in the ledger. */
async function ask(user: string): Promise<string> {
  const res = await fetch(`${daemon.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${daemon.key}`,
      "x-user": user,
    },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  });
  await res.text();
  return res.headers.get("x-request-id")!;
}

/** A gateway.yaml with its own state directory, which does not exist yet. */
function elsewhere(name: string): string {
  const dir = join(daemon.dir, name);
  mkdirSync(dir);
  writeFileSync(join(dir, "gateway.yaml"), YAML);
  return join(dir, "gateway.yaml");
}

const settled = (file: string): Set<string> => {
  const db = new DatabaseSync(join(file, "../.tollgate/store/ledger.db"), { readOnly: true });
  const rows = db.prepare("SELECT request FROM entry WHERE kind = 'settle'").all();
  db.close();
  return new Set(rows.map(({ request }) => String(request)));
};

it("backs up while it serves: each backup is complete, verified, and contains all earlier responses", async () => {
  const heard: string[] = [];
  let over = false;
  const clients = Array.from({ length: 4 }, async () => {
    while (!over) heard.push(await ask("ann"));
  });
  const copies: { file: string; before: string[]; head: string }[] = [];
  for (let i = 0; i < 2; i++) {
    while (heard.length < (i + 1) * 10) heard.push(await ask("ann"));
    const before = [...heard];
    const file = join(daemon.dir, `copy-${i}.tar`);
    const { code, out } = await tollgate("backup", file, "-c", daemon.file);
    expect([code, statSync(file).mode & 0o077]).toEqual([0, 0]);
    copies.push({ file, before, head: out.manifest.head.hash });
  }
  over = true;
  await Promise.all(clients);
  for (const [i, { file, before, head }] of copies.entries()) {
    const config = elsewhere(`restored-${i}`);
    const { code, out } = await tollgate("restore", file, "-c", config);
    expect([code, out.manifest.head.hash]).toEqual([0, head]);
    const there = settled(config);
    expect(before.filter((id) => !there.has(id))).toEqual([]);
    const verified = await tollgate("ledger", "verify", "-c", config, "--head", head);
    expect([verified.code, verified.out.problems, verified.out.containsHash]).toEqual([
      0,
      [],
      true,
    ]);
    const live = await tollgate("ledger", "verify", "-c", daemon.file, "--head", head);
    expect([live.code, live.out.containsHash]).toEqual([0, true]);
    expect((await tollgate("restore", file, "-c", config)).out.error.code).toBe("not_empty");
  }
  const again = await tollgate("backup", copies[0]!.file, "-c", daemon.file);
  expect([again.code, again.out.error.code]).toEqual([1, "file_exists"]);
});

it("a modified backup is not restored", async () => {
  const bytes = readFileSync(join(daemon.dir, "copy-0.tar"));
  for (const [i, at] of [bytes.length >> 1, bytes.length - 1_300].entries()) {
    const file = join(daemon.dir, `bent-${i}.tar`);
    const bent = Buffer.from(bytes);
    bent[at]! ^= 1;
    writeFileSync(file, i === 1 ? bent.subarray(0, at) : bent);
    const config = elsewhere(`bent-${i}`);
    const { code, out } = await tollgate("restore", file, "-c", config);
    expect([code, typeof out.error.code]).toEqual([1, "string"]);
    expect(existsSync(join(config, "../.tollgate/store"))).toBe(false);
  }
});

it("erases personal data from the ledger, its backups, and its reports", async () => {
  await ask("canary-7734");
  const before = join(daemon.dir, "with.tar");
  await tollgate("backup", before, "-c", daemon.file);
  expect(readFileSync(before).includes("canary-7734")).toBe(true);
  const label = ["--label", "x-user=canary-7734"];
  expect((await tollgate("erase", ...label, "-c", daemon.file)).out.texts).toBe(1);
  const { out } = await tollgate("usage", "--by", "label", "-c", daemon.file);
  expect(out.rows.map((row: { label: string }) => row.label)).toEqual([
    "x-user=ann",
    "x-user=erased",
  ]);
  const after = join(daemon.dir, "without.tar");
  await tollgate("backup", after, "-c", daemon.file);
  expect(readFileSync(after).includes("canary-7734")).toBe(false);
  const config = elsewhere("replayed");
  const restored = await tollgate("restore", before, "--erased-in", after, "-c", config);
  expect([restored.code, restored.out.erased]).toEqual([0, 1]);
  const db = readFileSync(join(config, "../.tollgate/store/ledger.db"));
  expect(db.includes("canary-7734")).toBe(false);
  expect((await tollgate("ledger", "verify", "-c", config)).out.problems).toEqual([]);
  const none = await tollgate("erase", "-c", daemon.file);
  expect([none.code, none.out.error.code]).toEqual([1, "usage"]);
});

it("an erased key has no name", async () => {
  const { key } = (await daemon.ask("keys.create", { name: "Ann's laptop" })) as never as {
    key: { id: string };
  };
  expect((await tollgate("erase", "--key", key.id, "-c", daemon.file)).code).toBe(0);
  const { keys } = (await daemon.ask("keys.show", { id: key.id })) as never as {
    keys: { name: string }[];
  };
  expect(keys.map(({ name }) => name)).toEqual(["erased"]);
});

it("archives rows, and reads an archive without other files", async () => {
  const file = join(daemon.dir, "rows.jsonl.gz");
  const made = await tollgate("ledger", "archive", file, "-c", daemon.file);
  expect(made.code).toBe(0);
  const config = elsewhere("nowhere");
  const read = ["ledger", "archive", file, "--verify", "-c", config];
  const fine = await tollgate(...read, "--head", made.out.lastHash);
  expect([fine.code, fine.out.ok, fine.out.rows]).toEqual([0, true, made.out.rows]);
  expect((await tollgate(...read, "--head", "another")).code).toBe(1);
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.subarray(0, bytes.length - 20));
  expect((await tollgate(...read)).out.ok).toBe(false);
});

it("a store without this feature reports so", async () => {
  await using plain = await startInProcess({ yaml: `${YAML}\nstore: memory` });
  for (const [command, input] of [
    ["backup", { file: join(plain.dir, "x.tar") }],
    ["ledger.archive", { file: join(plain.dir, "x.gz") }],
    ["ledger.status", {}],
    ["erase", { key: "k" }],
  ] as const)
    await expect(plain.ask(command, input)).rejects.toThrow(/The store "memory" does not support/);
});
