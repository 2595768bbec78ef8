import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES, GATEWAY_OPTIONS } from "../../support/command.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "erase [options]",
  description:
    `Will ${COMMAND_SPECS.erase.summary}: what a label says, or what a key is called and what its labels say. Rows, sums and budgets stay, and ` +
    'the ledger still verifies; reports say "erased" in its place. It cannot be undone. Backups and archives that were made before ' +
    "have it still: tollgate restore --erased-in takes it out of those.",
  options: {
    label: {
      placeholder: "name=value",
      description: "this label, wherever it stands, as in user=4711",
    },
    key: {
      placeholder: "id",
      description: "the key's name, its labels, and the labels of all its rows",
    },
    ...GATEWAY_OPTIONS,
  },
  examples: ["tollgate erase --label user=4711", "tollgate erase --key k_7f3a"],
  async run(given) {
    const [label, key] = [given.getText("label"), given.getText("key")];
    if ((label === undefined) === (key === undefined))
      return fail(
        "invalid",
        "Say what: --label name=value, or --key <id>. See tollgate erase --help.",
        {
          code: "usage",
        },
      );
    await using door = await openStoreAccess(given);
    const { texts, hashes } = (await door.run("erase", { label, key })) as unknown as {
      texts: number;
      hashes: readonly string[];
    };
    if (given.json) printJson({ texts, hashes });
    else if (texts === 0) printRemark(paintRemark("yellow", "Nothing of it was there."));
    else print(`${plural(texts, "text")} erased`);
    return EXIT_CODES.ok;
  },
};
