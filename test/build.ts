// `npm run build`: what is published, in dist/. The compiler rewrites `.ts` imports and brings the JSON along that is
// imported; nothing else happens to the source. Built beside and swapped in, so that a broken build leaves the last good one.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const dist = join(root, "dist");
const bench = join(root, `node_modules/.tollgate-build-${process.pid}`);
const [fresh, old] = [join(bench, "new"), join(bench, "old")];
const began = performance.now();

mkdirSync(bench);
const tsc = join(root, "node_modules/.bin/tsc");
const { status } = spawnSync(tsc, ["-p", "test/tsconfig.build.json", "--outDir", fresh], {
  cwd: root,
  stdio: "inherit",
});
if (status === 0) {
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(fresh, dist);
  const files = readdirSync(dist, { recursive: true }).filter((name) => `${name}`.endsWith(".js"));
  console.log(
    `dist: ${files.length} modules in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  );
}
rmSync(bench, { recursive: true, force: true });
process.exitCode = status ?? 1;
