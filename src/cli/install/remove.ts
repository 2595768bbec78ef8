import { fail } from "../../model/error.ts";
import { nearest } from "../../lib/text.ts";
import { type CliCommand, CONFIG, EXIT } from "../command.ts";
import { say, sayJson } from "../terminal.ts";
import { lockPlace } from "./lock-file.ts";
import { npm } from "./npm.ts";

export const remove: CliCommand = {
  usage: "plugin remove <package> [options]",
  about: "Takes a plugin's package out of plugins.lock.yaml, and uninstalls it.",
  options: CONFIG,
  words: { least: 2, most: 2 },
  examples: ["tollgate plugin remove tollgate-provider-acme"],
  async run(given) {
    const name = given.words[1]!;
    const place = lockPlace(given);
    if (!place.lock.delete(name)) {
      const near = nearest(name, place.lock.keys());
      const meant = near === undefined ? "" : ` Did you mean "${near}"?`;
      fail("not_found", `${place.file} has no ${name}.${meant}`);
    }
    const { ok, err } = await npm(place.folder, "uninstall", name);
    if (!ok) fail("upstream", `npm could not remove ${name}: ${err.trim().slice(0, 600)}`);
    place.keep();
    if (given.json) sayJson({ removed: name });
    else say(`${name} is gone. What still says \`use:\` of it in gateway.yaml will be refused.`);
    return EXIT.fine;
  },
};
