// Reads a package's plugin definitions in a child process that can do no harm: it may read the
// package and Tollgate, but not write, start processes, or read environment variables.
import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { NO_DEBUGGER } from "../../lib/disable-debugger.ts";
import { findPackageRoot } from "../../config/source/default-config.ts";
import type { LockedDefinition } from "../../config/plugin-lock.ts";
import { toLockedDefinition, type DeclaredDefinition } from "../../loader/declared-definition.ts";
import { fail } from "../../model/error.ts";
import { listExports } from "../check-plugin/package-exports.ts";
import { readManifest } from "../check-plugin/manifest.ts";

/**
 * Script that imports the definitions and prints them, and the files that were loaded for them, as
 * JSON. The path of a protocol has no definition.
 */
const DESCRIBE_SCRIPT = `
  const { registerHooks } = await import("node:module");
  const said = {}, files = [];
  registerHooks({ load(url, context, next) { files.push(url); return next(url, context); } });
  for (const [path, address] of Object.entries(JSON.parse(process.argv[1]))) {
    const { default: it } = await import(address);
    if (!it || !it["~tollgate"]) continue;
    const { "~tollgate": kind, api, needs, sends } = it;
    said[path] = { "~tollgate": kind, api, needs, sends, summary: String(it.summary) };
  }
  process.stdout.write(JSON.stringify({ said, files }, (_, value) => (typeof value === "function" ? null : value)));`;

export interface DescribedPlugin extends LockedDefinition {
  readonly summary: string;
}

export interface DescribedPackage {
  /** Plugins by their export paths. */
  readonly plugins: Readonly<Record<string, DescribedPlugin>>;
  /** Real paths of the files that were loaded for them. */
  readonly files: readonly string[];
}

/**
 * Describes a package.
 * @param folder Folder where the package is installed.
 * @param within Folder whose node_modules the process may read in addition.
 */
export async function describePackage(folder: string, within: string): Promise<DescribedPackage> {
  const paths = listExports(readManifest(folder)).map(({ path, file }): [string, string] => [
    path,
    pathToFileURL(join(realpathSync(folder), file)).href,
  ]);
  const readable = [folder, realpathSync(folder), join(within, "node_modules"), findPackageRoot()];
  const flags = [
    "--permission",
    NO_DEBUGGER,
    ...[...new Set(readable)].flatMap((each) => [
      `--allow-fs-read=${each}`,
      `--allow-fs-read=${each}/*`,
    ]),
    ...process.execArgv.filter((flag) => flag.startsWith("--conditions=")),
  ];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  execFile(
    process.execPath,
    [
      ...flags,
      "--input-type=module",
      "--eval",
      DESCRIBE_SCRIPT,
      JSON.stringify(Object.fromEntries(paths)),
    ],
    { cwd: within, env: {}, timeout: 30_000 },
    (error, out, err) => (error ? reject(new Error(err)) : resolve(out)),
  );
  const text = await promise.catch((error: Error) => {
    const why = /^(?:\w*Error.*): (.*)$/m.exec(error.message)?.[0] ?? error.message.slice(0, 300);
    return fail("invalid", `Cannot import the package in a sandbox without permissions: ${why}`, {
      code: "import_failed",
    });
  });
  const { said, files } = JSON.parse(text) as {
    said: Record<string, DeclaredDefinition & { summary: string }>;
    files: readonly string[];
  };
  const plugins = Object.fromEntries(
    Object.entries(said).map(([path, { summary, ...one }]) => [
      path,
      { ...toLockedDefinition(one), summary },
    ]),
  );
  const ofDisk = files.filter((url) => url.startsWith("file:"));
  return { plugins, files: ofDisk.map((url) => fileURLToPath(url)) };
}
