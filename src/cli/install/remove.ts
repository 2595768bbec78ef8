import { fail } from "../../model/error.ts";
import { didYouMean } from "../../lib/text.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../support/command.ts";
import { print, printJson } from "../format/terminal.ts";
import { openLockFile } from "./lock-file.ts";
import { runNpm } from "./npm.ts";

export const remove: CliCommand = {
  usage: "plugin remove <package> [options]",
  description: "Removes a plugin package from plugins.lock.yaml and uninstalls it.",
  options: CONFIG_OPTIONS,
  positionals: { least: 2, most: 2 },
  examples: ["tollgate plugin remove tollgate-provider-acme"],
  async run(given) {
    const name = given.positionals[1]!;
    const place = openLockFile(given);
    if (!place.lock.delete(name)) {
      fail(
        "not_found",
        `${name} not found in ${place.file}.${didYouMean(name, place.lock.keys())}`,
      );
    }
    const { ok, err } = await runNpm(place.folder, "uninstall", name);
    if (!ok) fail("upstream", `npm could not remove ${name}: ${err.trim().slice(0, 600)}`);
    place.save();
    if (given.json) printJson({ removed: name });
    else
      print(`Removed ${name}. Any \`use:\` of it that is left in gateway.yaml will be rejected.`);
    return EXIT_CODES.ok;
  },
};
