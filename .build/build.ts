// `npm run build`: builds the published package in dist/. The compiler rewrites `.ts` imports and
// copies imported JSON. Other modules are not changed further, because packages may import them.
// The program `tollgate` is bundled into few files, because half of its start was finding and
// reading 300 modules. The build is made in a separate folder and swapped in, so that a failed
// build keeps the last good one.
//
//     --no-check   does not check types, which `npm test` does for the whole repository
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.ts";
import { pages } from "./console.ts";

const root = new URL("..", import.meta.url).pathname;
const dist = join(root, "dist");
const bench = join(root, `node_modules/.tollgate-build-${process.pid}`);
const [fresh, old] = [join(bench, "new"), join(bench, "old")];
/** Condition with which the scripts import Tollgate from source. */
const SOURCE = "--conditions=tollgate-source";
const began = performance.now();

/** Only the published packages have declarations. Finding errors in them takes a fifth of a check. */
const emit = ["--declaration", ...(process.argv.includes("--no-check") ? ["--noCheck"] : [])];

/** Packages that are published separately. */
const PACKAGES = [
  "plugins/stores/postgres",
  "plugins/providers/aws",
  "plugins/providers/azure-foundry",
  "plugins/providers/vertex",
];
/** Folder of the programs. */
const cli = join(fresh, "src/cli");
const run = (program: string, ...args: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, stdio: "inherit" });
    child.on("error", () => resolve(false));
    child.on("close", (code) => resolve(code === 0));
  });

mkdirSync(cli, { recursive: true });
try {
  const tsc = join(root, "node_modules/.bin/tsc");
  const made = await Promise.all([
    run(tsc, "-p", ".build/tsconfig.json", ...emit, "--outDir", fresh),
    run(process.execPath, SOURCE, ".build/validators.ts", join(cli, "validators")),
  ]);
  process.exitCode = made.every(Boolean) ? 0 : 1;
  if (process.exitCode === 0) {
    await bundle(fresh);
    await pages(join(fresh, "console"));
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
    // Build the separate packages against the new dist/, as users have it.
    const buildPackage = async (folder: string) => {
      const [out, made] = [join(root, folder, "dist"), join(bench, folder)];
      if (!(await run(tsc, "-p", join(root, folder), ...emit, "--outDir", made)))
        return void (process.exitCode = 1);
      if (existsSync(out)) renameSync(out, join(bench, `old-${PACKAGES.indexOf(folder)}`));
      renameSync(made, out);
    };
    await Promise.all(PACKAGES.map(buildPackage));
    // Remove the compile cache of the previous build.
    rmSync(join(root, "node_modules/.cache/tollgate"), { recursive: true, force: true });
    const files = readdirSync(dist, { recursive: true }).filter((name) =>
      `${name}`.endsWith(".js"),
    );
    console.log(
      `dist: ${files.length} modules in ${((performance.now() - began) / 1000).toFixed(1)} s`,
    );
  }
} finally {
  rmSync(bench, { recursive: true, force: true });
}
