// `npm run build`: what is published, in dist/. The compiler rewrites `.ts` imports and brings the JSON along that is
// imported; nothing else happens to the source. Built beside and swapped in, so that a broken build leaves the last good one.
import { spawnSync } from "node:child_process";
import { readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const dist = join(root, "dist");
const fresh = join(root, "dist/.new");
const began = performance.now();

rmSync(fresh, { recursive: true, force: true });
const tsc = join(root, "node_modules/.bin/tsc");
const { status } = spawnSync(tsc, ["-p", "test/tsconfig.build.json", "--outDir", fresh], {
  cwd: root,
  stdio: "inherit",
});
if (status === 0) {
  for (const old of readdirSync(dist).filter((name) => name !== ".new"))
    rmSync(join(dist, old), { recursive: true });
  for (const name of readdirSync(fresh)) renameSync(join(fresh, name), join(dist, name));
  const files = readdirSync(dist, { recursive: true }).filter((name) =>
    /(?<!\.new.*)\.js$/.test(`${name}`),
  );
  console.log(
    `dist: ${files.length} modules in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  );
}
rmSync(fresh, { recursive: true, force: true });
process.exitCode = status ?? 1;
