import { createInterface } from "node:readline/promises";
import { plural } from "../../lib/text.ts";
import { API_VERSION } from "../../loader/validate-definition.ts";
import { isTollgateModule } from "../../loader/locked-modules.ts";
import { readPackageTree } from "../../loader/package-tree.ts";
import { fail } from "../../model/error.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../support/command.ts";
import { paintRemark, printRemark, print, printJson } from "../format/terminal.ts";
import { findInstalled, openLockFile } from "./lock-file.ts";
import { runNpm, describeProvenance, viewPackage } from "./npm.ts";
import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { NO_DEBUGGER } from "../../lib/disable-debugger.ts";
import { findPackageRoot } from "../../lib/package-root.ts";
import type { LockedDefinition } from "../../config/plugin-lock.ts";
import { toLockedDefinition, type DeclaredDefinition } from "../../loader/lock-check.ts";
import { listExports } from "../check-plugin/package-exports.ts";
import { readManifest } from "../check-plugin/manifest.ts";

export const add: CliCommand = {
  usage: "plugin add <package> [options]",
  description:
    "Installs a plugin package next to gateway.yaml without running its scripts. " +
    "Shows the package and its permissions, asks for confirmation once, and records " +
    "the exact content of the package and its dependencies in plugins.lock.yaml.",
  options: {
    ...CONFIG_OPTIONS,
    yes: { short: "y", description: "Accept without confirmation" },
    "no-install": { description: "Lock the package that is already installed" },
  },
  positionals: { least: 2, most: 2 },
  examples: ["tollgate plugin add tollgate-provider-acme", "tollgate plugin add ./acme.tgz --yes"],
  async run(given) {
    const spec = given.positionals[1]!;
    const place = openLockFile(given);
    const { folder, lock } = place;
    const there = given.has("no-install");
    const meant = there
      ? { name: spec, integrity: lock.get(spec)?.integrity }
      : await viewPackage(folder, spec);
    if (!there) {
      const { ok, err } = await runNpm(folder, "install", "--save-exact", spec);
      if (!ok) fail("upstream", `npm could not install ${spec}: ${err.trim().slice(0, 600)}`);
    }
    const root =
      findInstalled(folder, meant.name) ??
      fail("not_found", `${meant.name} is not installed beside ${folder}.`);
    const { plugins, files } = await describePackage(root, folder);
    const tree = readPackageTree(root);
    const stray = files.find((file) => !tree.files.has(file) && !isTollgateModule(file));
    if (stray !== undefined)
      fail(
        "invalid",
        `The package loads ${stray}, which it does not declare as a dependency, so the lock cannot cover it. Ask its author to add the package to dependencies.`,
        { code: "undeclared_dependency" },
      );
    const origin = there ? "already installed" : await describeProvenance(folder, meant.name);
    const entries = Object.entries(plugins);
    if (entries.length === 0) fail("invalid", `${meant.name} contains no plugin.`);
    const other = entries.find(([, { api }]) => api !== API_VERSION);
    if (other)
      fail(
        "invalid",
        `The plugin uses API version ${other[1].api}, and this gateway supports version ${API_VERSION}.`,
      );
    if (!given.json)
      printRemark(
        [
          ...entries.map(([path, one]) => describePlugin(meant.name, path, one)),
          `  ${meant.name}@${tree.version}: ${plural(tree.packages.size, "package")}, ${Math.ceil(tree.bytes / 1024)} KiB; ${origin}`,
        ].join("\n"),
      );
    await confirmInstall(given.has("yes"), given.json);
    lock.set(meant.name, {
      version: tree.version,
      ...(meant.integrity !== undefined && { integrity: meant.integrity }),
      tree: tree.hash,
      plugins: Object.fromEntries(
        entries.map(([path, { summary: _, ...kept }]) => [path, kept] as const),
      ),
      packages: Object.fromEntries(tree.packages),
    });
    place.save();
    if (given.json) printJson({ package: meant.name, ...lock.get(meant.name), provenance: origin });
    else print(`Locked ${meant.name}@${tree.version} in ${place.file}.`);
    return EXIT_CODES.ok;
  },
};

const describePlugin = (name: string, path: string, one: DescribedPlugin): string =>
  [
    `${paintRemark("bold", path === "." ? name : name + path.slice(1))}  ${one.kind}, api ${one.api}: ${one.summary}`,
    `  needs ${one.needs.join(", ") || "nothing beyond the public internet"}`,
    ...(one.sends === undefined
      ? []
      : [
          `  sends prompts and responses ${one.sends === "nowhere" ? "nowhere" : `elsewhere: ${one.sends}`}`,
        ]),
  ].join("\n");

/** Asks for confirmation. Without --yes, this fails if stdin is not a terminal or --json is set. */
async function confirmInstall(yes: boolean, json: boolean): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || json)
    fail("invalid", "Nothing was locked. To accept the package, pass --yes.", { code: "usage" });
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question("Lock it? [y/N] ").finally(() => terminal.close());
  if (!/^y(es)?$/i.test(answer.trim())) fail("canceled", "Nothing was locked.");
}

// Reads a package's plugin definitions in a child process with restricted rights. It may read the
// package and Tollgate, but it may not write files, start processes, or read environment variables.

/**
 * Script that imports the definitions and prints them as JSON, together with the files that were
 * loaded for them. The path of a protocol has no definition.
 */
const DESCRIBE_SCRIPT = `
  const { registerHooks } = await import("node:module");
  const definitions = {}, files = [];
  registerHooks({ load(url, context, next) { files.push(url); return next(url, context); } });
  for (const [path, address] of Object.entries(JSON.parse(process.argv[1]))) {
    const { default: it } = await import(address);
    if (!it || !it["~tollgate"]) continue;
    const { "~tollgate": kind, api, needs, sends } = it;
    definitions[path] = { "~tollgate": kind, api, needs, sends, summary: String(it.summary) };
  }
  process.stdout.write(JSON.stringify({ definitions, files }, (_, value) => (typeof value === "function" ? null : value)));`;

interface DescribedPlugin extends LockedDefinition {
  readonly summary: string;
}

interface DescribedPackage {
  /** Plugins by their export paths. */
  readonly plugins: Readonly<Record<string, DescribedPlugin>>;
  /** Real paths of the files that were loaded for these plugins. */
  readonly files: readonly string[];
}

/**
 * @param folder Folder where the package is installed.
 * @param within Folder whose node_modules the process may read in addition.
 */
async function describePackage(folder: string, within: string): Promise<DescribedPackage> {
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
  const { definitions, files } = JSON.parse(text) as {
    definitions: Record<string, DeclaredDefinition & { summary: string }>;
    files: readonly string[];
  };
  const plugins = Object.fromEntries(
    Object.entries(definitions).map(([path, { summary, ...one }]) => [
      path,
      { ...toLockedDefinition(one), summary },
    ]),
  );
  const ofDisk = files.filter((url) => url.startsWith("file:"));
  return { plugins, files: ofDisk.map((url) => fileURLToPath(url)) };
}
