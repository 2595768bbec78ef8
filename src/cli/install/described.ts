// What a package says of its plugins, found out where its code can do nothing: in a process of its own that may read the package and
// Tollgate, and neither write, nor start anything, nor see a variable.
import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { packageRoot } from "../../config/default.ts";
import type { LockedDefinition } from "../../config/plugin-lock.ts";
import { statedIn, type StatedDefinition } from "../../loader/stated.ts";
import { fail } from "../../model/error.ts";
import { exportsOf } from "../check-plugin/plugins.ts";
import { manifestIn } from "../check-plugin/manifest.ts";

/** Reads the definitions and says them as JSON; a protocol's path has none. */
const SCRIPT = `
  const said = {};
  for (const [path, address] of Object.entries(JSON.parse(process.argv[1]))) {
    const { default: it } = await import(address);
    if (!it || !it["~tollgate"]) continue;
    const { "~tollgate": kind, api, needs, sends } = it;
    said[path] = { "~tollgate": kind, api, needs, sends, summary: String(it.summary) };
  }
  process.stdout.write(JSON.stringify(said, (_, value) => (typeof value === "function" ? null : value)));`;

export interface DescribedPlugin extends LockedDefinition {
  readonly summary: string;
}

/** By the path under which each is exported. `folder`: where it is installed; `within`: what it may read beside itself. */
export async function described(
  folder: string,
  within: string,
): Promise<Readonly<Record<string, DescribedPlugin>>> {
  const paths = exportsOf(manifestIn(folder)).map(({ path, file }): [string, string] => [
    path,
    pathToFileURL(join(realpathSync(folder), file)).href,
  ]);
  const readable = [folder, realpathSync(folder), join(within, "node_modules"), packageRoot()];
  const flags = [
    "--permission",
    ...[...new Set(readable)].flatMap((each) => [
      `--allow-fs-read=${each}`,
      `--allow-fs-read=${each}/*`,
    ]),
    ...process.execArgv.filter((flag) => flag.startsWith("--conditions=")),
  ];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  execFile(
    process.execPath,
    [...flags, "--input-type=module", "--eval", SCRIPT, JSON.stringify(Object.fromEntries(paths))],
    { cwd: within, env: {}, timeout: 30_000 },
    (error, out, err) => (error ? reject(new Error(err)) : resolve(out)),
  );
  const text = await promise.catch((error: Error) => {
    const why = /^(?:\w*Error.*): (.*)$/m.exec(error.message)?.[0] ?? error.message.slice(0, 300);
    return fail("invalid", `It cannot be imported where it may do nothing: ${why}`, {
      code: "import_failed",
    });
  });
  const said = JSON.parse(text) as Record<string, StatedDefinition & { summary: string }>;
  return Object.fromEntries(
    Object.entries(said).map(([path, { summary, ...one }]) => [
      path,
      { ...statedIn(one), summary },
    ]),
  );
}
