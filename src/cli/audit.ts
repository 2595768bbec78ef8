import { COMMANDS } from "../gateway/control/table.ts";
import type { AuditedCommand } from "../plugin/audit.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { momentOf } from "./since.ts";
import { storeDoor } from "./store.ts";
import { clean, columns, moment, paint, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "audit [options]",
  about: `Will ${COMMANDS["audit.list"].summary}. Each stands in the ledger's chain of hashes from before it took effect on: tollgate ledger verify\nfinds one that was changed or taken out.`,
  options: {
    limit: { value: "n", about: "how many at most; 100 by default" },
    after: { value: "next", about: "those before, as `next` of --json says" },
    since: { value: "when", about: "from then on: 7d, 2026-11-01" },
    until: { value: "when", about: "up to then: 1d, 2026-12-01" },
    ...PLACE,
  },
  examples: ["tollgate audit", "tollgate audit --limit 10 --json"],
  async run(given) {
    const limit = given.text("limit");
    await using door = await storeDoor(given);
    const answer = await door.ask("audit.list", {
      after: given.text("after"),
      ...(limit !== undefined && { limit: Number(limit) }),
      from: momentOf(given, "since"),
      to: momentOf(given, "until"),
    });
    const { items } = answer as unknown as { items: readonly AuditedCommand[] };
    if (given.json) sayJson(answer);
    else if (items.length === 0) remark("Nothing was changed by a command yet.");
    else say(columns(items.map(inWords)));
    return EXIT.fine;
  },
};

const inWords = (of: AuditedCommand): string[] => [
  paint("gray", moment(of.at)),
  clean(of.actor),
  of.door,
  clean(of.address ?? ""),
  paint("bold", of.command),
  clean(of.target ?? ""),
  paint(of.outcome === "done" ? "green" : "yellow", of.code ?? of.outcome),
];
