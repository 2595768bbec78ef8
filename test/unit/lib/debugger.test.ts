// No process opens a debugger on a signal: every place that starts one disables it, and so does
// everything that ships.
import { readFileSync } from "node:fs";
import { globSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { childProcessFlags, NO_DEBUGGER } from "../../../src/lib/disable-debugger.ts";
import { root } from "../../kit/process/program.ts";

const read = (file: string) => readFileSync(join(root, file), "utf8");

it("is disabled wherever the program starts another Node process", () => {
  const starts = globSync("{src,plugins,deploy}/**/*.{ts,js}", { cwd: root }).filter(
    (file) =>
      !file.includes("node_modules") &&
      /\b(spawn|spawnSync|execFile|execFileSync|execve|fork|setupPrimary)\b[?.]*\(/.test(
        read(file),
      ) &&
      /process\.execPath|setupPrimary/.test(read(file)),
  );
  expect(starts.length).toBeGreaterThan(8);
  const open = starts.filter(
    (file) => !/NO_DEBUGGER|childProcessFlags\(|--disable-sigusr1/.test(read(file)),
  );
  expect(open).toEqual([]);
});

it("is disabled in what is shipped: image, units, scripts", () => {
  for (const file of [
    "deploy/Dockerfile",
    "deploy/systemd/tollgate.service",
    "deploy/launchd/tollgate.plist",
  ])
    expect(read(file), file).toMatch(/NODE_OPTIONS[^\n]*(\n\s*<string>)?[^\n]*--disable-sigusr1/);
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  for (const name of ["start", "dev", "tollgate"]) expect(scripts[name]).toContain(NO_DEBUGGER);
});

it("is logged once", () => {
  expect(childProcessFlags(["--conditions=x"])).toEqual([NO_DEBUGGER, "--conditions=x"]);
  expect(childProcessFlags([NO_DEBUGGER, "-C", "x"])).toEqual([NO_DEBUGGER, "-C", "x"]);
});
