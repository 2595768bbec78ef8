import { createInterface } from "node:readline/promises";
import { plural } from "../../lib/text.ts";
import { API_VERSION } from "../../loader/validate-definition.ts";
import { isTollgateModule } from "../../loader/locked-modules.ts";
import { readPackageTree } from "../../loader/package-tree.ts";
import { fail } from "../../model/error.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../support/command.ts";
import { paintRemark, printRemark, print, printJson } from "../format/terminal.ts";
import { describePackage, type DescribedPlugin } from "./describe-package.ts";
import { findInstalled, openLockFile } from "./lock-file.ts";
import { runNpm, describeProvenance, viewPackage } from "./npm.ts";

export const add: CliCommand = {
  usage: "plugin add <package> [options]",
  description:
    "Installs a plugin's package beside gateway.yaml without running any of its scripts, shows what it is and what it needs, asks once, and " +
    "writes down in plugins.lock.yaml what it is, byte for byte, with everything that it depends on.",
  options: {
    ...CONFIG_OPTIONS,
    yes: { short: "y", description: "accept it without being asked" },
    "no-install": { description: "lock what is installed already" },
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
        `It loads ${stray}, which belongs to no package that it declares, so no lock can cover it. Its author must add that package to dependencies.`,
        { code: "undeclared_dependency" },
      );
    const origin = there ? "it was here already" : await describeProvenance(folder, meant.name);
    const entries = Object.entries(plugins);
    if (entries.length === 0) fail("invalid", `${meant.name} brings no plugin.`);
    const other = entries.find(([, { api }]) => api !== API_VERSION);
    if (other)
      fail("invalid", `It speaks api ${other[1].api}, this gateway speaks api ${API_VERSION}.`);
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
    else print(`${meant.name}@${tree.version} is locked in ${place.file}.`);
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
          `  sends what people wrote ${one.sends === "nowhere" ? "nowhere" : `elsewhere: ${one.sends}`}`,
        ]),
  ].join("\n");

/** Asks for confirmation. Without --yes, fails if stdin is not a terminal or --json is given. */
async function confirmInstall(yes: boolean, json: boolean): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || json)
    fail("invalid", "Nothing is locked: say --yes to accept it.", { code: "usage" });
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question("Lock it? [y/N] ").finally(() => terminal.close());
  if (!/^y(es)?$/i.test(answer.trim())) fail("canceled", "Nothing is locked.");
}
