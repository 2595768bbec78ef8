import { callControl } from "../../../admin/socket/control-client.ts";
import { type CliCommand, EXIT_CODES, GATEWAY_OPTIONS } from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "console [options]",
  description:
    "Prints a sign-in link to the console of the running gateway, as owner. The link " +
    "works once, within a minute. The part after # is never sent to a server or " +
    "logged.",
  options: GATEWAY_OPTIONS,
  examples: ["tollgate console", "tollgate console --state-dir /var/lib/tollgate"],
  async run(given) {
    const answer = await callControl(await findStateDir(given), "console");
    if (given.json) printJson(answer);
    else {
      print((answer as { url: string }).url);
      printRemark(paintRemark("gray", "The link works once, within a minute."));
    }
    return EXIT_CODES.ok;
  },
};
