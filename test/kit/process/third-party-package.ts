// A folder outside of the tree with a third-party package. `tollgate` is installed next to it, and
// nothing else is accessible.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { conformanceChecks } from "tollgate/testing";

const ROOT = join(import.meta.dirname, "../../..");

/** `from`: a folder in `test`. Its sources are copied to `src` of the returned folder. */
export function createPackage(from: string, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${from}-`));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules/tollgate"));
  cpSync(join(ROOT, "test", from), join(folder, "src"), { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, type: "module" }));
  return folder;
}

export const removeFolder = (folder: string): void =>
  rmSync(folder, { recursive: true, force: true });

/** Compiler errors of the package, one line each. */
export function typeCheckPackage(folder: string, options: object): Promise<string[]> {
  const compilerOptions = {
    target: "es2024",
    module: "nodenext",
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    customConditions: ["tollgate-source"],
    types: ["node"],
    typeRoots: [join(ROOT, "node_modules/@types")],
    ...options,
  };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, include: ["src"] }),
  );
  return new Promise((resolve) => {
    execFile(
      join(ROOT, "node_modules/.bin/tsc"),
      ["-p", ".", "--pretty", "false"],
      { cwd: folder },
      (_error, out) => resolve(out.split("\n").filter((line) => line.includes("error TS"))),
    );
  });
}

/** Failed checks of the plugin test kit for its provider and its frontend, one line each. */
export async function checkPackage(folder: string): Promise<string[]> {
  const failed: string[] = [];
  const given = {
    provider: {
      with: { base_url: "http://127.0.0.1:1/v1" },
      credential: { api_key: "canary-51aa" },
      recordings: false,
    },
    frontend: { recordings: false },
  } as const;
  for (const [file, options] of Object.entries(given)) {
    const { default: plugin } = await import(join(folder, `src/${file}.ts`));
    for (const { name, run } of conformanceChecks(plugin, options))
      await run().catch((problem: Error) => failed.push(`${name}: ${problem.message}`));
  }
  return failed;
}
