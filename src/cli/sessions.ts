import type { ShownSession } from "../gateway/admin/sessions.ts";
import { askControl } from "../gateway/control/asking.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { plural } from "../lib/text.ts";
import { type CliCommand, EXIT, group, type Part, PLACE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { columns, moment, paint, remark, say, sayJson } from "./terminal.ts";

const parts: Readonly<Record<string, Part>> = {
  list: {
    usage: "sessions list [options]",
    summary: COMMANDS["sessions.list"].summary,
    about: "Lists the sessions of the console. They end after 30 minutes without use, or 12 hours.",
    options: PLACE,
    examples: ["tollgate sessions list"],
    async run(given) {
      const answer = await askControl(await stateDirOf(given), "sessions.list");
      const { sessions } = answer as unknown as { sessions: readonly ShownSession[] };
      if (given.json) sayJson({ sessions });
      else if (sessions.length === 0) remark("There are no sessions.");
      else
        say(
          columns(
            sessions.map(({ id, name, role, within, address, used }) => [
              id,
              paint("bold", name),
              role,
              within ?? "",
              address,
              paint("gray", moment(used)),
            ]),
          ),
        );
      return EXIT.fine;
    },
  },
  end: {
    usage: "sessions end [id] [options]",
    summary: COMMANDS["sessions.end"].summary,
    about: "Signs one session out, or without an id all of them.",
    options: PLACE,
    words: { least: 0, most: 1 },
    examples: ["tollgate sessions end"],
    async run(given) {
      const [id] = given.words;
      const answer = await askControl(await stateDirOf(given), "sessions.end", { id });
      if (given.json) sayJson(answer);
      else say(`${plural((answer as { ended: number }).ended, "session")} ended`);
      return EXIT.fine;
    },
  },
};

export const command: CliCommand = group(
  "sessions",
  "Shows and ends the sessions of the console.",
  parts,
);
