import { callControl } from "../../../admin/socket/control-client.ts";
import { type CliCommand, EXIT_CODES, GATEWAY_OPTIONS } from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "console [options]",
  description:
    "Prints a link that signs in to the console of the running gateway as its owner: once, within a minute. What stands behind # in it\n" +
    "is sent to no server and is in no log.",
  options: GATEWAY_OPTIONS,
  examples: ["tollgate console", "tollgate console --state-dir /var/lib/tollgate"],
  async run(given) {
    const answer = await callControl(await findStateDir(given), "console");
    if (given.json) printJson(answer);
    else {
      print((answer as { url: string }).url);
      printRemark(paintRemark("gray", "It works once, within a minute."));
    }
    return EXIT_CODES.ok;
  },
};
