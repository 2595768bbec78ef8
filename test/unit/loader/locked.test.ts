// A locked package loads only files that its lock covers: for generated packages, with files
// wherever npm, a user, or an attacker may put them, and every way in which code loads code. The
// hooks are Node's own, so this runs in a separate process.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../kit/process/program.ts";

it("loads no file without a hash and no changed file, and a changed file changes verify's result", () => {
  const script = join(root, "test/rig/attack/lock-bypass.ts");
  const out = execFileSync(process.execPath, ["--conditions=tollgate-source", script, "12", "7"], {
    cwd: root,
    encoding: "utf8",
  });
  const { wrong, counts } = JSON.parse(out) as {
    wrong: readonly string[];
    counts: Readonly<Record<string, number>>;
  };
  expect(wrong).toEqual([]);
  for (const each of ["loaded", "refused", "changed"]) expect(counts[each]).toBeGreaterThan(30);
}, 120_000);
