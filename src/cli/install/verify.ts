import { plural } from "../../lib/text.ts";
import { changesOf } from "../../loader/accepted.ts";
import { treeOf } from "../../loader/tree.ts";
import { type CliCommand, CONFIG, EXIT } from "../command.ts";
import { paint, say, sayJson } from "../terminal.ts";
import { installedAt, lockPlace } from "./lock-file.ts";

export const verify: CliCommand = {
  usage: "plugin verify [options]",
  about:
    "Says of each package in plugins.lock.yaml whether it is, byte for byte, what was accepted, and what it depends on too. Runs nothing of " +
    "them. Exits with 1 when one is not.",
  options: CONFIG,
  words: { least: 1, most: 1 },
  examples: [
    "tollgate plugin verify",
    "tollgate plugin verify -c /etc/tollgate/gateway.yaml --json",
  ],
  async run(given) {
    const { folder, file, lock } = lockPlace(given);
    const looked = [...lock].map(([name, accepted]) => {
      const root = installedAt(folder, name);
      if (root === undefined) return { package: name, wrong: "it is not installed" };
      const tree = treeOf(root);
      return tree.hash === accepted.tree
        ? { package: name }
        : { package: name, wrong: changesOf(accepted, tree) };
    });
    const wrong = looked.filter((one) => one.wrong !== undefined);
    if (given.json) sayJson({ ok: wrong.length === 0, packages: looked });
    else {
      for (const one of wrong) say(`${paint("red", "wrong")}  ${one.package}: ${one.wrong}`);
      say(`${file}: ${plural(looked.length, "package")}, ${wrong.length} not what was accepted`);
    }
    return wrong.length === 0 ? EXIT.fine : EXIT.failed;
  },
};
