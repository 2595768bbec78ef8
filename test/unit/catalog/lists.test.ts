import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createInMemoryModelLists,
  openModelLists,
  parseModelList,
} from "../../../src/catalog/model-lists.ts";
import type { ModelInfo } from "../../../src/model/facts.ts";

const AT = Date.parse("2026-11-20T10:00:00Z");
const one: ModelInfo[] = [
  {
    model: "gpt-6",
    operation: "chat",
    can: { tools: true },
    price: { lines: [{ unit: "input", usd: "0.25", per: 1_000_000 }] },
  },
];

let dir: string;
beforeEach(async () => (dir = await mkdtemp(join(tmpdir(), "lists-"))));
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("live lists", () => {
  it("survive a restart, and only their owner can read them", async () => {
    const lists = await openModelLists(dir);
    expect(lists.update("open.ai/../x", "main", one, AT)).toBe(true);
    lists.update("openai", "main", one, AT);
    lists.update("openai", "spare", [], AT + 1);
    await lists.whenSaved();
    for (const name of await readdir(dir))
      expect((await stat(join(dir, name))).mode & 0o777).toBe(0o600);
    const again = await openModelLists(dir);
    expect(again.errors).toEqual([]);
    expect(again.of("openai")).toEqual([
      { credential: "main", at: AT, models: one },
      { credential: "spare", at: AT + 1, models: [] },
    ]);
    expect(again.of("open.ai/../x")).toEqual([{ credential: "main", at: AT, models: one }]);
  });

  it("an unchanged list only changes its date", async () => {
    const lists = createInMemoryModelLists();
    let told = 0;
    lists.onChange(() => told++);
    lists.update("openai", "main", one, AT);
    const { version } = lists;
    expect(lists.update("openai", "main", structuredClone(one), AT + 5)).toBe(false);
    expect([lists.version, told]).toEqual([version, 1]);
    expect(lists.of("openai")![0]!.at).toBe(AT + 5);
  });

  it("an unreadable list keeps the old one in use", () => {
    const lists = createInMemoryModelLists();
    lists.update("openai", "main", one, AT);
    for (const garbage of [
      undefined,
      null,
      {},
      "models",
      [null],
      [{}],
      [{ model: "x" }],
      [{ model: "x", operation: "no kind" }],
      [...one, { model: 7, operation: "chat" }],
      [{ model: "x", operation: "chat", limits: { context: "many" } }],
      [{ model: "x", operation: "chat", can: { tools: "yes" } }],
      [{ model: "x", operation: "chat", price: { lines: [{ unit: "input", usd: 0.5, per: 1 }] } }],
      [
        {
          model: "x",
          operation: "chat",
          price: { lines: [{ unit: "input", usd: "1e-6", per: 1 }] },
        },
      ],
      [{ model: "x", operation: "chat", price: { lines: [{ unit: "vibes", usd: "1", per: 1 }] } }],
      Array.from({ length: 20_001 }, (_, i) => ({ model: `m${i}`, kind: "chat" })),
    ])
      expect(() => lists.update("openai", "main", garbage, AT)).toThrowError(/not usable/);
    expect(lists.of("openai")).toEqual([{ credential: "main", at: AT, models: one }]);
  });

  it("decoding is idempotent, and drops unknown fields", () => {
    const info = fc.record(
      {
        model: fc.string({ minLength: 1, maxLength: 20 }),
        operation: fc.constantFrom("chat", "image"),
        name: fc.string({ maxLength: 50 }),
        limits: fc.record({ context: fc.nat() }, { requiredKeys: [] }),
        junk: fc.anything(),
      },
      { requiredKeys: ["model", "operation"] },
    );
    fc.assert(
      fc.property(fc.array(info), (list) => {
        const read = parseModelList(list);
        expect(parseModelList(read)).toEqual(read);
        expect(parseModelList(JSON.parse(JSON.stringify(read)))).toEqual(read);
        expect(read.every((m) => !("junk" in m) && /^[!#-~]+$/.test(m.model))).toBe(true);
        expect(new Set(read.map((m) => m.model)).size).toBe(read.length);
      }),
    );
  });

  it("corrupt, foreign, and huge files are reported and skipped", async () => {
    const lists = await openModelLists(dir);
    lists.update("good", "main", one, AT);
    await lists.whenSaved();
    await writeFile(join(dir, "bad.json"), "{");
    await writeFile(join(dir, "null.json"), "null");
    await writeFile(join(dir, "foreign.json"), '{"format":99,"lists":[]}');
    await writeFile(
      join(dir, "odd.json"),
      '{"format":1,"lists":[{"credential":"a","at":1,"models":[7]}]}',
    );
    await writeFile(join(dir, "huge.json"), Buffer.alloc(33 * 1024 * 1024, 32));
    await writeFile(join(dir, "good.json.77.tmp"), "half");
    const again = await openModelLists(dir);
    expect(again.of("good")).toHaveLength(1);
    expect(again.errors.map((p) => p.split(" ")[0]).sort()).toEqual([
      "bad.json",
      "foreign.json",
      "huge.json",
      "null.json",
      "odd.json",
    ]);
    expect(await readdir(dir)).not.toContain("good.json.77.tmp");
  });

  it("many concurrent changes end with the last one, complete at every moment", async () => {
    const lists = await openModelLists(dir);
    const path = join(dir, "openai.json");
    for (let i = 0; i < 50; i++) {
      lists.update("openai", "main", [{ model: `m${i}`, operation: "chat" }], AT + i);
      if (i % 5 === 0) await new Promise(setImmediate);
      // A reader finds a complete file or none at any time.
      const text = await readFile(path, "utf8").catch(() => "{}");
      expect(() => JSON.parse(text)).not.toThrow();
    }
    await lists.whenSaved();
    expect((await openModelLists(dir)).of("openai")![0]!.models[0]!.model).toBe("m49");
  });

  it("a removed credential removes its list, also from disk", async () => {
    const lists = await openModelLists(dir);
    lists.update("openai", "a", one, AT);
    lists.update("openai", "b", one, AT);
    lists.retainCredentials("openai", ["b"]);
    await lists.whenSaved();
    expect((await openModelLists(dir)).of("openai")!.map((h) => h.credential)).toEqual(["b"]);
    lists.retainCredentials("openai", []);
    await lists.whenSaved();
    expect(await readdir(dir)).toEqual([]);
  });

  it("a read-only directory loses nothing in memory, and is logged", async () => {
    const lists = await openModelLists(dir);
    await rm(dir, { recursive: true });
    lists.update("openai", "main", one, AT);
    await lists.whenSaved();
    expect(lists.of("openai")).toHaveLength(1);
    expect(lists.errors).toHaveLength(1);
  });
});
