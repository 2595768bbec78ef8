// `npm run build`: what is published, in dist/. The compiler rewrites `.ts` imports and brings the JSON along that is
// imported; nothing else happens to what others import. What `tollgate` itself runs is put into few files: half of a
// start was finding and reading three hundred. Built beside and swapped in, so that a broken build leaves the last good one.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

const root = new URL("..", import.meta.url).pathname;
const dist = join(root, "dist");
const bench = join(root, `node_modules/.tollgate-build-${process.pid}`);
const [fresh, old] = [join(bench, "new"), join(bench, "old")];
/** What it runs of ours, it runs from source. */
const SOURCE = "--conditions=tollgate-source";
const began = performance.now();

/** Everything of ours and nothing of others, whose packages stay what npm made of them. Files lie where the programs were: they find each other, and the package, from there. */
async function gather(): Promise<void> {
  const bundle = await rolldown({
    input: {
      bin: join(cli, "bin.js"),
      worker: join(cli, "worker.js"),
      "ledger-thread": join(fresh, "plugins/stores/sqlite/ledger-thread.js"),
    },
    platform: "node",
    external: (id) => !/^(\.|\/|tollgate\/)/.test(id),
    plugins: [
      {
        // By its own name a module would be found in the last build.
        name: "ourselves",
        resolveId: (id) =>
          id.startsWith("tollgate/")
            ? join(fresh, id.replace("tollgate", "src"), "index.js")
            : null,
      },
    ],
    experimental: { attachDebugInfo: "none" },
  });
  await bundle.write({ dir: cli, entryFileNames: "[name].js", chunkFileNames: "part-[hash].js" });
}

/** The folder that the programs are in. */
const cli = join(fresh, "src/cli");
const run = (program: string, ...args: readonly string[]) =>
  spawnSync(program, args, { cwd: root, stdio: "inherit" }).status === 0;

mkdirSync(bench);
try {
  const tsc = join(root, "node_modules/.bin/tsc");
  const made =
    run(tsc, "-p", "test/tsconfig.build.json", "--outDir", fresh) &&
    run(process.execPath, SOURCE, "test/validators.ts", join(cli, "validators"));
  process.exitCode = made ? 0 : 1;
  if (made) {
    await gather();
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
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
