// Destinations of the access log: a file that is renamed, one that cannot be written, and the
// journal.
import {
  mkdirSync,
  mkdtempSync,
  symlinkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isSystemdJournal } from "tollgate/plugin";
import { JournalRateMonitor, Output } from "../../../plugins/observers/access-log/output.ts";

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "tollgate-lines-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const told: unknown[] = [];
const news = {
  onError: (why: unknown) => void told.push((why as NodeJS.ErrnoException).code),
  onRecovered: (lost: number) => void told.push(lost),
};
async function output(path: string): Promise<Output> {
  told.length = 0;
  const made = new Output(path, news);
  await made.checkWritable();
  return made;
}
const linesOf = (path: string) => readFileSync(path, "utf8").split("\n").slice(0, -1);

describe("a file", () => {
  it("is not reopened after its end: late lines are lost and counted", async () => {
    const path = join(folder, "ended");
    const made = await output(path);
    await made.write("one\n", 1);
    await made.close();
    await made.write("late\n", 1);
    expect(linesOf(path)).toEqual(["one"]);
    expect(made.counts).toEqual({ written: 1, lost: 1 });
    expect(told).toEqual([]);
  });

  it("is opened for appending, and readable by its group at most", async () => {
    const path = join(folder, "kept");
    writeFileSync(path, "before\n", { mode: 0o600 });
    rmSync(path);
    const made = await output(path);
    await made.write("one\n", 1);
    await made.close();
    const again = await output(path);
    await again.write("two\n", 1);
    await again.close();
    expect(linesOf(path)).toEqual(["one", "two"]);
    expect(statSync(path).mode & 0o137).toBe(0);
  });

  it("that is renamed, removed, or truncated loses no written line, in any order", async () => {
    const path = join(folder, "moving");
    const made = await output(path);
    await made.write("", 0);
    const all: Promise<void>[] = [];
    const put: string[] = [];
    for (let n = 0; n < 60; n++) {
      all.push(made.write(`${n}\n`, 1));
      if (n % 10 === 4) {
        // Pending lines are written to the old file.
        renameSync(path, `${path}.${n}`);
        put.push(`${path}.${n}`);
        all.push(n % 20 === 4 ? made.reopenIfRotated() : made.reopen());
        await all.at(-1);
      }
    }
    await Promise.all(all);
    const written = [...put, path].flatMap(linesOf).map(Number);
    expect(written.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n));
    unlinkSync(path);
    await made.reopenIfRotated();
    await made.write("after\n", 1);
    expect(linesOf(path)).toEqual(["after"]);
    // `copytruncate`: the next lines are at the start, and not after a hole.
    writeFileSync(path, "");
    await made.write("next\n", 1);
    expect(readFileSync(path, "utf8")).toBe("next\n");
    await made.close();
  });

  it("that cannot be reopened stays open", async () => {
    const path = join(folder, "gone", "log");
    await expect(new Output(path, news).checkWritable()).rejects.toThrow(/ENOENT/);
    const before = join(folder, "first");
    mkdirSync(before);
    const made = await output(join(before, "log"));
    await made.write("one\n", 1);
    renameSync(before, join(folder, "second"));
    await made.reopen();
    await made.reopenIfRotated();
    await made.write("two\n", 1);
    expect(linesOf(join(folder, "second", "log"))).toEqual(["one", "two"]);
    expect(made.counts).toEqual({ written: 2, lost: 0 });
    await made.close();
  });
});

describe("a full disk", () => {
  it("loses lines, counts them, and is logged once", async () => {
    const made = await output("/dev/full");
    for (let n = 0; n < 3; n++) await made.write("a\nb\n", 2);
    expect(made.counts).toEqual({ written: 0, lost: 6 });
    expect(told).toEqual(["ENOSPC"]);
    await made.close();
  });

  it("with free space again receives complete lines, and the operator the count", async () => {
    const path = join(folder, "link");
    symlinkSync("/dev/full", path);
    const made = await output(path);
    await made.write("a\nb\n", 2);
    unlinkSync(path);
    await made.reopen();
    await made.write("c\n", 1);
    expect(linesOf(path)).toEqual(["c"]);
    expect(told).toEqual(["ENOSPC", 2]);
    expect(made.counts).toEqual({ written: 1, lost: 2 });
    await made.close();
  });
});

describe("the journal", () => {
  it("is used if JOURNAL_STREAM identifies this output", () => {
    const { dev, ino } = statSync(join(folder), { bigint: true });
    expect(isSystemdJournal(undefined)).toBe(false);
    expect(isSystemdJournal(`${dev}:${ino}`)).toBe(false);
    expect(isSystemdJournal("7:8", 99)).toBe(false);
  });

  it("is reported once as slower than the lines, and not for a short delay", () => {
    const said: number[] = [];
    const haste = new JournalRateMonitor((rate) => void said.push(rate));
    for (let second = 0; second < 5; second++) haste.add(300, second * 1_000);
    expect(said).toEqual([]);
    for (let n = 0; n < 5; n++) haste.add(200, 9_000 + n);
    expect(said).toEqual([400]);
  });
});
