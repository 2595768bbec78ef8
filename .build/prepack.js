// Builds before `npm pack` and `npm publish`, so that the package works. Plain JavaScript, because
// without `npm ci` the machine's own version of Node.js runs this.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const node = at("node_modules/.bin/node");

if (existsSync(node))
  process.exitCode =
    spawnSync(node, [at(".build/build.ts")], { stdio: ["ignore", 2, 2] }).status ?? 1;
else {
  process.stderr.write("Nothing is packed: the build needs what `npm ci` brings. Run it first.\n");
  process.exitCode = 1;
}
