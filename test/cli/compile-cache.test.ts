// Tests the folder of the compile cache and its use.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { isOwnedFolder } from "../../src/cli/support/compile-cache.ts";

const above = mkdtempSync(join(tmpdir(), "tollgate-kept-"));
afterAll(() => rmSync(above, { recursive: true, force: true }));
let count = 0;
const fresh = () => join(above, `${count++}`, "kept");
const made = (mode: number) => {
  const folder = fresh();
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, mode);
  return folder;
};

const KEPT = new URL("../../src/cli/support/compile-cache.ts", import.meta.url).href;
const PROGRAM = new URL("../../src/lib/json/json-scanner.ts", import.meta.url).href;
const MAIN = (folder: string) =>
  `import { setUpCompileCache } from "${KEPT}"; setUpCompileCache(${JSON.stringify(folder)}); await import("${PROGRAM}");`;
/** Without a configured folder. */
const { NODE_COMPILE_CACHE: _, ...env } = process.env;
const run = (folder: string) =>
  spawnSync(process.execPath, ["--input-type=module", "-e", MAIN(folder)], {
    encoding: "utf8",
    env,
  });

test("creates a private directory and caches compiled code in it", () => {
  const folder = fresh();
  expect(run(folder)).toMatchObject({ status: 0, stderr: "" });
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const [version] = readdirSync(folder);
  expect(readdirSync(join(folder, version!)).length).toBeGreaterThan(0);
});

test("does not use a directory that others can read or write", () => {
  for (const mode of [0o770, 0o720, 0o702, 0o755]) {
    const folder = made(mode);
    expect(isOwnedFolder(folder)).toBe(false);
    expect(run(folder)).toMatchObject({ status: 0, stderr: "" });
    expect(readdirSync(folder)).toEqual([]);
  }
  expect(isOwnedFolder(made(0o700))).toBe(true);
});

test("does not use a file or link in its place, or a path that cannot be created", () => {
  const link = fresh();
  mkdirSync(join(link, ".."), { recursive: true });
  symlinkSync(made(0o700), link);
  expect(isOwnedFolder(link)).toBe(false);
  const file = join(above, "file");
  writeFileSync(file, "");
  expect(isOwnedFolder(join(file, "below"))).toBe(false);
  expect(run(join(file, "below"))).toMatchObject({ status: 0, stderr: "" });
});
