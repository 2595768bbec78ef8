// `npm run build`: builds the published package in dist/. The compiler rewrites `.ts` imports and
// copies imported JSON. Modules that others import are not changed further. The program `tollgate`
// is bundled into few files, because half of its start was finding and reading 300 modules. The
// build is made in a separate folder and swapped in, so that a failed build keeps the last good
// one.
import { spawnSync } from "node:child_process";
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

/** Packages that are published separately. */
const PACKAGES = [
  "plugins/stores/postgres",
  "plugins/providers/aws",
  "plugins/providers/azure-foundry",
  "plugins/providers/vertex",
];
/** Folder of the programs. */
const cli = join(fresh, "src/cli");
const run = (program: string, ...args: readonly string[]) =>
  spawnSync(program, args, { cwd: root, stdio: "inherit" }).status === 0;

mkdirSync(bench);
try {
  const tsc = join(root, "node_modules/.bin/tsc");
  const made =
    run(tsc, "-p", ".build/tsconfig.json", "--outDir", fresh) &&
    run(process.execPath, SOURCE, ".build/validators.ts", join(cli, "validators"));
  process.exitCode = made ? 0 : 1;
  if (made) {
    await bundle(fresh);
    await pages(join(fresh, "console"));
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
    // Build the separate packages against the new dist/, as users have it.
    for (const folder of PACKAGES) {
      const [out, made] = [join(root, folder, "dist"), join(bench, folder)];
      if (!run(tsc, "-p", join(root, folder), "--outDir", made)) {
        process.exitCode = 1;
        continue;
      }
      if (existsSync(out)) renameSync(out, join(bench, `old-${PACKAGES.indexOf(folder)}`));
      renameSync(made, out);
    }
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
