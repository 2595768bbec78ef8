import type { ShownSession } from "../../../runtime/access/sessions.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { plural } from "../../../lib/text.ts";
import {
  type CliCommand,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import {
  alignColumns,
  formatTime,
  paint,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

const subcommands: Readonly<Record<string, Subcommand>> = {
  list: {
    usage: "sessions list [options]",
    summary: COMMAND_SPECS["sessions.list"].summary,
    description:
      "Lists console sessions. A session ends after 30 minutes without use, and after " +
      "12 hours at the latest.",
    options: GATEWAY_OPTIONS,
    examples: ["tollgate sessions list"],
    async run(given) {
      const answer = await callControl(await findStateDir(given), "sessions.list");
      const { sessions } = answer as unknown as { sessions: readonly ShownSession[] };
      if (given.json) printJson({ sessions });
      else if (sessions.length === 0) printRemark("There are no sessions.");
      else
        print(
          alignColumns(
            sessions.map(({ id, name, role, account, address, lastUsedAt }) => [
              id,
              paint("bold", name),
              role,
              account ?? "",
              address,
              paint("gray", formatTime(lastUsedAt)),
            ]),
          ),
        );
      return EXIT_CODES.ok;
    },
  },
  revoke: {
    usage: "sessions revoke [id] [options]",
    summary: COMMAND_SPECS["sessions.revoke"].summary,
    description: "Revokes one console session, or all of them if no ID is given.",
    options: GATEWAY_OPTIONS,
    positionals: { least: 0, most: 1 },
    examples: ["tollgate sessions revoke"],
    async run(given) {
      const [id] = given.positionals;
      const answer = await callControl(await findStateDir(given), "sessions.revoke", { id });
      if (given.json) printJson(answer);
      else print(`${plural((answer as { revoked: number }).revoked, "session")} revoked`);
      return EXIT_CODES.ok;
    },
  },
};

export const command: CliCommand = createCommandGroup(
  "sessions",
  "Lists and revokes console sessions.",
  subcommands,
);
