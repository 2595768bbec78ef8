import { askControl } from "../gateway/control/asking.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "console [options]",
  about:
    "Prints a link that signs in to the console of the running gateway as its owner: once, within a minute. What stands behind # in it\n" +
    "is sent to no server and is in no log.",
  options: PLACE,
  examples: ["tollgate console", "tollgate console --state-dir /var/lib/tollgate"],
  async run(given) {
    const answer = await askControl(await stateDirOf(given), "console");
    if (given.json) sayJson(answer);
    else {
      say((answer as { url: string }).url);
      remark(paintRemark("gray", "It works once, within a minute."));
    }
    return EXIT.fine;
  },
};
