import { plural } from "../../lib/text.ts";
import { describeChanges } from "../../loader/lock-check.ts";
import { readPackageTree } from "../../loader/package-tree.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../support/command.ts";
import { paint, print, printJson } from "../format/terminal.ts";
import { findInstalled, openLockFile } from "./lock-file.ts";

export const verify: CliCommand = {
  usage: "plugin verify [options]",
  description:
    "Verifies that each package in plugins.lock.yaml, with its dependencies, matches " +
    "the accepted content byte for byte. It runs no package code. Exits with 1 if a " +
    "package does not match.",
  options: CONFIG_OPTIONS,
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate plugin verify",
    "tollgate plugin verify -c /etc/tollgate/gateway.yaml --json",
  ],
  async run(given) {
    const { folder, file, lock } = openLockFile(given);
    const looked = [...lock].map(([name, accepted]) => {
      const root = findInstalled(folder, name);
      if (root === undefined) return { package: name, wrong: "not installed" };
      const tree = readPackageTree(root);
      return tree.hash === accepted.tree
        ? { package: name }
        : { package: name, wrong: describeChanges(accepted, tree) };
    });
    const wrong = looked.filter((one) => one.wrong !== undefined);
    if (given.json) printJson({ ok: wrong.length === 0, packages: looked });
    else {
      for (const one of wrong) print(`${paint("red", "wrong")}  ${one.package}: ${one.wrong}`);
      print(`${file}: ${plural(looked.length, "package")}, ${wrong.length} do not match the lock`);
    }
    return wrong.length === 0 ? EXIT_CODES.ok : EXIT_CODES.failed;
  },
};
