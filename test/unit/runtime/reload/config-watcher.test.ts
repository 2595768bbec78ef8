import { writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../../../src/config/load-config.ts";
import {
  watchConfig,
  watchFiles,
  type WatchOptions,
} from "../../../../src/runtime/reload/config-watcher.ts";
import { hashContent } from "../../../../src/lib/content-hash.ts";
import type { Log } from "../../../../src/lib/log/log.ts";
import { createLoader } from "../../../../src/loader/plugin-loader.ts";
import { turnEventLoop, until } from "../../../kit/wait.ts";

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
  const seen = { told: 0, looks: 0, errors: [] as unknown[] };
  watching = watchFiles({
    listFiles: () => {
      seen.looks++;
      return (typeof names === "function" ? names() : names).map(at);
    },
    hashOf: () => undefined,
    onChange: () => void seen.told++,
    onError: (error) => void seen.errors.push(error),
    // Events only, unless a test concerns polling.
    pollMs: 1 << 30,
    ...more,
  });
  // Watched from the first check on: an event with a second change shows this.
  await looked(seen, 2);
  return seen;
}

let writes = 0;

/**
 * Waits until everything written so far was compared: a check that started later is complete when
 * the next one starts.
 */
async function looked(seen: { looks: number; errors: unknown[] }, goal = seen.looks + 2) {
  await until(async () => {
    await writeFile(at("beside"), `${writes++}`);
    return seen.looks >= goal || seen.errors.length > 0;
  });
}

test("a written file is reported once, through an event", async () => {
  await writeFile(at("a.yaml"), "1");
  const seen = await watched(["a.yaml"]);
  expect(seen.told).toBe(0);
  await writeFile(at("a.yaml"), "2");
  await until(() => seen.told === 1);
  await looked(seen);
  expect(seen.told).toBe(1);
});

test("a change between the read and the first check is reported", async () => {
  await writeFile(at("a.yaml"), "2");
  await writeFile(at("b.yaml"), "1");
  const read = (a: string) => (file: string) => hashContent(file === at("a.yaml") ? a : "1");
  const changed = await watched(["a.yaml", "b.yaml"], { hashOf: read("1") });
  expect(changed.told).toBe(1);
  await watching?.[Symbol.asyncDispose]();
  const same = await watched(["a.yaml", "b.yaml"], { hashOf: read("2") });
  expect(same.told).toBe(0);
});

test("a change of an added file before its first check is reported", async () => {
  const names = ["a.yaml"];
  await writeFile(at("a.yaml"), "1");
  await writeFile(at("b.yaml"), "1");
  const seen = await watched(() => names, { hashOf: () => hashContent("1"), pollMs: 20 });
  await writeFile(at("b.yaml"), "2");
  await looked(seen);
  expect(seen.told).toBe(0);
  names.push("b.yaml");
  await until(() => seen.told === 1);
  await looked(seen);
  expect(seen.told).toBe(1);
});

test("a plugin's file that changed between import and first check is reported, and an unchanged one is not", async () => {
  const saying = (text: string) => `export const said = ${JSON.stringify(text)};`;
  const write = () => writeFile(at("said.mjs"), saying("one"));
  await writeFile(at("gateway.yaml"), "providers: { mine: { use: ./mine.mjs } }");
  await writeFile(
    at("mine.mjs"),
    `import { said } from "./said.mjs"; export default { "~tollgate": "provider", api: 1, name: "mine", summary: said, setup() {} };`,
  );
  await write();
  const builtin = { provider: {}, frontend: {}, middleware: {}, store: {} };
  const loaded = await loadConfig(at("gateway.yaml"), {
    env: {},
    loadPlugin: createLoader({ builtin, hostModules: {} }),
  });
  expect([...loaded.codeFiles.keys()].toSorted()).toEqual([at("mine.mjs"), at("said.mjs")]);
  let told = 0;
  const seen = { looks: 0, errors: [] };
  const watching = () =>
    watchConfig(
      () => {
        seen.looks++;
        return loaded;
      },
      () => void told++,
      {} as Log,
    );
  {
    await using _ = watching();
    // Each check requests the list, and the content of the three files that it does not know.
    await looked(seen, 6);
    expect(told).toBe(0);
  }
  await writeFile(at("said.mjs"), saying("two"));
  await using _ = watching();
  await until(() => told === 1);
});

test("a replaced file is reported, each time", async () => {
  await writeFile(at("a.yaml"), "0");
  const seen = await watched(["a.yaml"]);
  for (let i = 1; i <= 3; i++) {
    await writeFile(at("a.yaml.swp"), `${i}`);
    await rename(at("a.yaml.swp"), at("a.yaml"));
    await until(() => seen.told === i);
  }
});

test("a new timestamp, equal content, and a neighboring file are no change", async () => {
  await writeFile(at("a.yaml"), "1");
  const seen = await watched(["a.yaml"]);
  await utimes(at("a.yaml"), new Date(), new Date());
  await writeFile(at("a.yaml"), "1");
  await writeFile(at("b.yaml"), "2");
  await looked(seen);
  expect(seen.told).toBe(0);
});

test("a file that is removed and restored is reported both times", async () => {
  await writeFile(at("a.yaml"), "1");
  const seen = await watched(["a.yaml"]);
  await rm(at("a.yaml"));
  await until(() => seen.told === 1);
  await writeFile(at("a.yaml"), "1");
  await until(() => seen.told === 2);
});

test("a link to another directory is a change, and so is an edit of its target", async () => {
  // Like orchestrators mount a config: gateway.yaml → ..data/gateway.yaml, ..data → a dated folder.
  for (const [dated, text] of Object.entries({ "..1": "one", "..2": "two" })) {
    await mkdir(at(dated));
    await writeFile(at(`${dated}/gateway.yaml`), text);
  }
  await symlink("..1", at("..data"));
  await symlink("..data/gateway.yaml", at("gateway.yaml"));
  const seen = await watched(["gateway.yaml"]);
  await symlink("..2", at("..new"));
  await rename(at("..new"), at("..data"));
  await until(() => seen.told === 1);
  await writeFile(at("..2/gateway.yaml"), "three");
  await until(() => seen.told === 2);
});

test("many writes together are one change, and continuous writes are reported nevertheless", async () => {
  await writeFile(at("a.yaml"), "0");
  const seen = await watched(["a.yaml"]);
  for (let i = 1; i <= 50; i++) writeFileSync(at("a.yaml"), `${i}`);
  await until(() => seen.told > 0);
  await looked(seen);
  expect(seen.told).toBe(1);
  let writes = 0;
  await until(async () => {
    await writeFile(at("a.yaml"), `again ${writes++}`);
    return seen.told >= 5;
  });
  // Many more writes than reports, each of which needs a quiet period.
  expect(writes).toBeGreaterThan(5);
});

test("a change during a reload is reported once, after it", async () => {
  await writeFile(at("a.yaml"), "0");
  let running = 0;
  let most = 0;
  let count = 0;
  const reloaded = Promise.withResolvers<void>();
  const seen = await watched(["a.yaml"], {
    onChange: async () => {
      most = Math.max(most, ++running);
      count++;
      await reloaded.promise;
      running--;
    },
  });
  await writeFile(at("a.yaml"), "1");
  await until(() => count === 1);
  for (let i = 2; i < 6; i++) {
    await writeFile(at("a.yaml"), `${i}`);
    await turnEventLoop();
  }
  reloaded.resolve();
  await until(() => count === 2);
  await looked(seen);
  expect([count, most]).toEqual([2, 1]);
});

test("a longer list is watched from the next check", async () => {
  await mkdir(at("sub"));
  await writeFile(at("a.yaml"), "1");
  await writeFile(at("sub/b.yaml"), "1");
  let names = ["a.yaml"];
  const seen = await watched(() => names, { pollMs: 50 });
  names = ["a.yaml", "sub/b.yaml"];
  const { looks } = seen;
  // The second next one starts when the next is complete.
  await until(() => seen.looks >= looks + 2);
  expect(seen.told).toBe(0);
  await writeFile(at("sub/b.yaml"), "2");
  await until(() => seen.told === 1);
});

test("a missing directory is reported each time, and watched as soon as it exists", async () => {
  const lookMs = 1_000;
  let slowLooks = 0;
  const beside = setInterval(() => slowLooks++, lookMs);
  onTestFinished(() => clearInterval(beside));
  const seen = await watched(["later/a.yaml"], { pollMs: lookMs });
  expect(seen.errors).toHaveLength(1);
  for (const n of [1, 2]) {
    await mkdir(at("later"));
    await writeFile(at("later/a.yaml"), `${n}`);
    let told = seen.told;
    await until(() => seen.told > told);
    // Through an event, before the next poll. A busy machine gets several attempts.
    let byEvent = false;
    for (let tries = 0; tries < 20 && !byEvent; tries++) {
      const before = slowLooks;
      told = seen.told;
      await writeFile(at("later/a.yaml"), `${n} again ${tries}`);
      await until(() => seen.told > told);
      byEvent = slowLooks === before;
    }
    expect(byEvent).toBe(true);
    told = seen.told;
    await rm(at("later"), { recursive: true });
    await until(() => seen.told > told);
  }
  expect(seen.errors).toHaveLength(3);
});

test("reports nothing after its end", async () => {
  await writeFile(at("a.yaml"), "1");
  const seen = await watched(["a.yaml"]);
  await watching![Symbol.asyncDispose]();
  const { looks } = seen;
  const other = await watched(["a.yaml"]);
  await writeFile(at("a.yaml"), "2");
  // An event for one watcher would also reach this one.
  await until(() => other.told === 1);
  expect([seen.told, seen.looks]).toEqual([0, looks]);
});
