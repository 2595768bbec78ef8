import { COMMANDS } from "../gateway/control/table.ts";
import { plural } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { storeDoor } from "./store.ts";
import { paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "erase [options]",
  about:
    `Will ${COMMANDS.erase.summary}: what a label says, or what a key is called and what its labels say. Rows, sums and budgets stay, and ` +
    'the ledger still verifies; reports say "erased" in its place. It cannot be undone. Backups and archives that were made before ' +
    "have it still: tollgate restore --erased-in takes it out of those.",
  options: {
    label: { value: "name=value", about: "this label, wherever it stands, as in user=4711" },
    key: { value: "id", about: "the key's name, its labels, and the labels of all its rows" },
    ...PLACE,
  },
  examples: ["tollgate erase --label user=4711", "tollgate erase --key k_7f3a"],
  async run(given) {
    const [label, key] = [given.text("label"), given.text("key")];
    if ((label === undefined) === (key === undefined))
      return fail(
        "invalid",
        "Say what: --label name=value, or --key <id>. See tollgate erase --help.",
        {
          code: "usage",
        },
      );
    await using door = await storeDoor(given);
    const { texts, values } = (await door.ask("erase", { label, key })) as unknown as {
      texts: number;
      values: readonly string[];
    };
    if (given.json) sayJson({ texts, values });
    else if (texts === 0) remark(paintRemark("yellow", "Nothing of it was there."));
    else say(`${plural(texts, "text")} erased`);
    return EXIT.fine;
  },
};
