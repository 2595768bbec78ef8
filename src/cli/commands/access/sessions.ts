import type { ShownSession } from "../../../runtime/access/sessions.ts";
import { plural } from "../../../lib/text.ts";
import { type CliCommand, createCommandGroup } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { alignColumns, formatTime, paint, printRemark, print } from "../../format/terminal.ts";

export const command: CliCommand = createCommandGroup(
  "sessions",
  "Lists and revokes console sessions.",
  {
    list: gatewayCommand<{ readonly sessions: readonly ShownSession[] }>("sessions.list", {
      print({ sessions }) {
        if (sessions.length === 0) return printRemark("There are no sessions.");
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
      },
    }),
    revoke: gatewayCommand<{ readonly revoked: number }>("sessions.revoke", {
      print: ({ revoked }) => print(`${plural(revoked, "session")} revoked`),
    }),
  },
);
