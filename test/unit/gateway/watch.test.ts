import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchFiles, type WatchOptions } from "../../../src/gateway/reload/watch.ts";

let folder: string;
let watching: AsyncDisposable | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tollgate-watch-"));
});
afterEach(async () => {
  await watching?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const at = (name: string) => join(folder, name);

async function watched(
  names: readonly string[] | (() => readonly string[]),
  more: Partial<WatchOptions> = {},
) {
  const told: number[] = [];
  const errors: unknown[] = [];
  watching = watchFiles({
    files: () => (typeof names === "function" ? names() : names).map(at),
    changed: () => void told.push(performance.now()),
    failed: (error) => void errors.push(error),
    // Events alone, unless a test is about the slow look.
    lookMs: 1 << 30,
    ...more,
  });
  await sleep(60);
  return { told, errors };
}

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 3_000, interval: 10 });

test("a written file is told once, within a moment", async () => {
  await writeFile(at("a.yaml"), "1");
  const { told } = await watched(["a.yaml"]);
  expect(told).toEqual([]);
  const began = performance.now();
  await writeFile(at("a.yaml"), "2");
  await eventually(() => expect(told).toHaveLength(1));
  expect(told[0]! - began).toBeLessThan(500);
  await sleep(150);
  expect(told).toHaveLength(1);
});

test("what changed between the reading and the first look is told", async () => {
  await writeFile(at("a.yaml"), "2");
  await writeFile(at("b.yaml"), "1");
  const read = (a: string) =>
    new Map([
      [at("a.yaml"), a],
      [at("b.yaml"), "1"],
    ]);
  const changed = await watched(["a.yaml", "b.yaml"], { read: read("1") });
  expect(changed.told).toHaveLength(1);
  await watching?.[Symbol.asyncDispose]();
  const same = await watched(["a.yaml", "b.yaml"], { read: read("2") });
  expect(same.told).toEqual([]);
});

test("a replaced file is told, again and again", async () => {
  await writeFile(at("a.yaml"), "0");
  const { told } = await watched(["a.yaml"]);
  for (let i = 1; i <= 3; i++) {
    await writeFile(at("a.yaml.swp"), `${i}`);
    await rename(at("a.yaml.swp"), at("a.yaml"));
    await eventually(() => expect(told).toHaveLength(i));
  }
});

test("neither a touch, nor the same words, nor a neighbour is a change", async () => {
  await writeFile(at("a.yaml"), "1");
  const { told } = await watched(["a.yaml"]);
  await utimes(at("a.yaml"), new Date(), new Date());
  await writeFile(at("a.yaml"), "1");
  await writeFile(at("b.yaml"), "2");
  await sleep(250);
  expect(told).toEqual([]);
});

test("a file that goes and comes back is told both times", async () => {
  await writeFile(at("a.yaml"), "1");
  const { told } = await watched(["a.yaml"]);
  await rm(at("a.yaml"));
  await eventually(() => expect(told).toHaveLength(1));
  await writeFile(at("a.yaml"), "1");
  await eventually(() => expect(told).toHaveLength(2));
});

test("a link that is turned to another folder is a change, and so is an edit behind it", async () => {
  // As orchestrators mount a config: gateway.yaml → ..data/gateway.yaml, ..data → a dated folder.
  for (const [dated, text] of Object.entries({ "..1": "one", "..2": "two" })) {
    await mkdir(at(dated));
    await writeFile(at(`${dated}/gateway.yaml`), text);
  }
  await symlink("..1", at("..data"));
  await symlink("..data/gateway.yaml", at("gateway.yaml"));
  const { told } = await watched(["gateway.yaml"]);
  await symlink("..2", at("..new"));
  await rename(at("..new"), at("..data"));
  await eventually(() => expect(told).toHaveLength(1));
  await writeFile(at("..2/gateway.yaml"), "three");
  await eventually(() => expect(told).toHaveLength(2));
});

test("many writes in one go are one change, and a writer that never rests is told all the same", async () => {
  await writeFile(at("a.yaml"), "0");
  const { told } = await watched(["a.yaml"]);
  const began = performance.now();
  for (let i = 1; performance.now() - began < 600; i++) {
    await writeFile(at("a.yaml"), `${i}`);
    await sleep(5);
  }
  expect(told.length).toBeGreaterThanOrEqual(2);
  expect(told.length).toBeLessThanOrEqual(12);
});

test("what changes while a reload runs is told after it, once", async () => {
  await writeFile(at("a.yaml"), "0");
  let running = 0;
  let most = 0;
  let count = 0;
  await watched(["a.yaml"], {
    changed: async () => {
      most = Math.max(most, ++running);
      count++;
      await sleep(300);
      running--;
    },
  });
  await writeFile(at("a.yaml"), "1");
  await eventually(() => expect(count).toBe(1));
  for (let i = 2; i < 6; i++) {
    await writeFile(at("a.yaml"), `${i}`);
    await sleep(30);
  }
  await eventually(() => expect(count).toBe(2));
  await sleep(400);
  expect([count, most]).toEqual([2, 1]);
});

test("a list that grows is followed at the next look", async () => {
  await mkdir(at("sub"));
  await writeFile(at("a.yaml"), "1");
  await writeFile(at("sub/b.yaml"), "1");
  let names = ["a.yaml"];
  const { told } = await watched(() => names, { lookMs: 50 });
  names = ["a.yaml", "sub/b.yaml"];
  await sleep(150);
  expect(told).toEqual([]);
  await writeFile(at("sub/b.yaml"), "2");
  await eventually(() => expect(told).toHaveLength(1));
});

test("a folder that is not there is said once each time, and watched as soon as it is", async () => {
  const { told, errors } = await watched(["later/a.yaml"], { lookMs: 1_000 });
  expect(errors).toHaveLength(1);
  for (const n of [1, 2]) {
    await mkdir(at("later"));
    await writeFile(at("later/a.yaml"), `${n}`);
    await eventually(() => expect(told).toHaveLength(3 * n - 2));
    const written = performance.now();
    await writeFile(at("later/a.yaml"), `${n} again`);
    await eventually(() => expect(told).toHaveLength(3 * n - 1));
    // By an event: the slow look found the folder a moment ago, and comes again in a second.
    expect(told.at(-1)! - written).toBeLessThan(700);
    await rm(at("later"), { recursive: true });
    await eventually(() => expect(told).toHaveLength(3 * n));
  }
  expect(errors).toHaveLength(3);
});

test("after its end it is silent", async () => {
  await writeFile(at("a.yaml"), "1");
  const { told } = await watched(["a.yaml"]);
  await watching![Symbol.asyncDispose]();
  await writeFile(at("a.yaml"), "2");
  await sleep(150);
  expect(told).toEqual([]);
});
