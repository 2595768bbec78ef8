// The guarantee of an upgrade: this version opens the folder of any release with unchanged content
// and continues it. An older version rejects a newer folder with one sentence.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { version } from "../../../src/cli/support/load-config.ts";
import { askOnNewConnection } from "../../kit/process/daemon.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { STATE_FIXTURES, fixtureYaml, describeState } from "../../kit/process/state-fixtures.ts";
import { spawnTollgate } from "../../kit/process/program.ts";

const releases = readdirSync(STATE_FIXTURES);

it("there is one for this version", () => expect(releases).toContain(version));

describe.each(releases)("the state directory of %s", (release) => {
  const copied = () => {
    const dir = mkdtempSync(join(tmpdir(), "tollgate-kept-"));
    cpSync(join(STATE_FIXTURES, release, "state"), join(dir, ".tollgate"), { recursive: true });
    return dir;
  };

  it("has the same content, a valid ledger, and working keys and budgets", async () => {
    const daemon = await startInProcess({ yaml: fixtureYaml, dir: copied() });
    try {
      const expected = JSON.parse(
        readFileSync(join(STATE_FIXTURES, release, "told.json"), "utf8"),
      ) as Record<string, unknown>;
      // Newer versions may return more, but the earlier part is the same.
      expect(await describeState(daemon)).toMatchObject(expected);
      expect(await daemon.ask("ledger.verify")).toMatchObject({ problems: [] });
      const key = readFileSync(join(STATE_FIXTURES, release, "state/key"), "utf8").trim();
      expect(await askOnNewConnection(daemon, "demo/echo", key)).toBe(200);
      expect(await askOnNewConnection(daemon, "demo/echo", `${key}x`)).toBe(401);
    } finally {
      await daemon[Symbol.asyncDispose]();
    }
  });

  it("of an earlier format is migrated, after its size is reported", async () => {
    const dir = copied();
    const db = new DatabaseSync(join(dir, ".tollgate/store/ledger.db"));
    const { user_version: newest } = db.prepare("PRAGMA user_version").get() as {
      user_version: number;
    };
    // As before the audit log existed.
    db.exec(`DROP TABLE audit; PRAGMA user_version = ${newest - 1}`);
    db.close();
    const daemon = await startInProcess({ yaml: fixtureYaml, dir });
    try {
      const line = await daemon.line(/ledger migration started/);
      expect(line).toMatchObject({ from: newest - 1, bytes: expect.any(Number) });
      expect(line["to"]).toBeGreaterThanOrEqual(newest);
      expect(daemon.log.indexOf(line)).toBeLessThan(
        daemon.log.findIndex(({ msg }) => msg === "listening"),
      );
      expect(await daemon.ask("audit.list")).toMatchObject({ items: expect.any(Array) });
    } finally {
      await daemon[Symbol.asyncDispose]();
    }
  });

  it("is unchanged if it cannot be migrated", async () => {
    const dir = copied();
    const file = join(dir, ".tollgate/store/ledger.db");
    const db = new DatabaseSync(file);
    const { user_version: newest } = db.prepare("PRAGMA user_version").get() as {
      user_version: number;
    };
    // The audit table can be created, but its index cannot, because its name exists.
    db.exec(`DROP TABLE audit; CREATE TABLE other (id); CREATE INDEX audit_by_id ON other (id);
      PRAGMA user_version = ${newest - 1}`);
    const form = () => db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
    const before = form();
    const { code, output } = await unserved(dir);
    expect([code, output]).toEqual([1, expect.stringContaining("audit_by_id")]);
    expect(form()).toEqual(before);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: newest - 1 });
    db.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it("from a newer version is rejected with one sentence, and unchanged", async () => {
    const dir = copied();
    const file = join(dir, ".tollgate/store/ledger.db");
    const db = new DatabaseSync(file);
    db.exec("PRAGMA user_version = 999");
    db.close();
    const before = readFileSync(file);
    const { code, output } = await unserved(dir);
    expect(code).toBe(1);
    expect(output).toMatch(
      /was written by a newer Tollgate \(ledger version 999; this one supports \d+\)/,
    );
    expect(readFileSync(file).equals(before)).toBe(true);
    rmSync(dir, { recursive: true, force: true });
  });
});

/** Output of a gateway that does not start there. */
async function unserved(dir: string): Promise<{ code: unknown; output: string }> {
  writeFileSync(join(dir, "gateway.yaml"), fixtureYaml);
  const child = spawnTollgate({ cwd: dir, args: ["serve", "--port", "0"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (part: Buffer) => (output += part));
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, output };
}
