import { plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES, GATEWAY_OPTIONS } from "../../support/command.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "erase [options]",
  description:
    "Permanently erases personal data from the ledger: the value of a label, or the " +
    "name and label values of a key. Rows, totals, and budgets stay, and the ledger " +
    'still verifies. Reports show "erased" instead. Erasing cannot be undone. ' +
    "Earlier backups and archives still contain the data. To remove it from a " +
    "backup, use tollgate restore --erased-in.",
  options: {
    label: {
      placeholder: "name=value",
      description: "Label to erase in all rows, such as user=4711",
    },
    key: {
      placeholder: "id",
      description: "Key to erase: its name, its labels, and the labels of all its rows",
    },
    ...GATEWAY_OPTIONS,
  },
  examples: ["tollgate erase --label user=4711", "tollgate erase --key k_7f3a"],
  async run(given) {
    const [label, key] = [given.getText("label"), given.getText("key")];
    if ((label === undefined) === (key === undefined))
      return fail(
        "invalid",
        "Pass either --label name=value or --key <id>. See tollgate erase --help.",
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
    else if (texts === 0) printRemark(paintRemark("yellow", "No matching data was found."));
    else print(`${plural(texts, "text")} erased`);
    return EXIT_CODES.ok;
  },
};
