import type { VerifyResult } from "../gateway/control/ledger-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { plural } from "../lib/text.ts";
import { formatUsd } from "../money/format.ts";
import type { JsonObject } from "../model/values.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, type CliInput, EXIT, group, type Part, PLACE } from "./command.ts";
import { KEEPING } from "./ledger-keeping.ts";
import { csvLine } from "./reports/csv.ts";
import { ROW_COLUMNS, rowLine } from "./reports/row-line.ts";
import { WHICH, whichOf } from "./since.ts";
import { storeDoor } from "./store.ts";
import { entries } from "./rows.ts";
import { moment, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const parts: Readonly<Record<string, Part>> = {
  verify: {
    usage: "ledger verify [options]",
    summary: COMMANDS["ledger.verify"].summary,
    about:
      "Says whether every row is what was written, and prints the newest hash. Note it down: --head tells later whether " +
      "the ledger was shortened since.",
    options: {
      head: { value: "hash", about: "a hash that was printed earlier must still be in it" },
      ...PLACE,
    },
    examples: ["tollgate ledger verify"],
    run: verify,
  },
  adjust: {
    usage: "ledger adjust <attempt> [options]",
    summary: COMMANDS["ledger.adjust"].summary,
    about:
      "Adds a row that changes what a call has cost, such as a refund, with the reason. The call's own rows stay as they are, " +
      "and its budgets count the correction. The call is named by `attempt`, as tollgate request shows it.",
    options: {
      usd: { value: "amount", about: "dollars on top of its cost; below zero takes some off" },
      reason: { value: "words", about: "why; it stands in the row" },
      ...PLACE,
    },
    words: { least: 1, most: 1 },
    examples: ["tollgate ledger adjust r1x7-1 --usd=-0.25 --reason refund"],
    run: adjust,
  },
  export: {
    usage: "ledger export [options]",
    summary: "write every row as JSON or as a table",
    about:
      "Writes every row, one JSON text a line, amounts in nano-dollars; or, with --csv, a line of a table.",
    options: {
      csv: { about: "write a table for spreadsheets, amounts as decimal dollars" },
      ...WHICH,
      ...PLACE,
    },
    examples: [
      "tollgate ledger export --since 2026-11-01 > november.jsonl",
      "tollgate ledger export --csv --since 2026-11-01 > november.csv",
    ],
    run: exported,
  },
  ...KEEPING,
};

export const command: CliCommand = group(
  "ledger",
  "Works on the rows of every call that was made.",
  parts,
);

async function verify(given: CliInput): Promise<number> {
  await using door = await storeDoor(given);
  const hash = given.text("head");
  const found = (await door.ask("ledger.verify", { hash })) as unknown as VerifyResult;
  if (!found.verifiable)
    fail("conflict", "This store keeps no chain of hashes, so there is nothing to verify.");
  const { problems, head, holds, kept } = found;
  const gone = kept?.prunedRows ?? 0;
  const fine = problems.length === 0 && holds !== false;
  if (given.json) sayJson({ ok: fine, ...found });
  else {
    for (const { path, message } of problems) say(`${paint("red", path)}  ${message}`);
    if (holds === false)
      say(
        `${paint("red", "head")}  ${hash} is not in this ledger: it was shortened, or is another one.${gone > 0 ? ` Or it is from before the ${plural(gone, "row")} that were pruned: an archive has it then.` : ""}`,
      );
    if (fine) say(`${paint("green", "as it was written")}  ${rowsThere(head?.seq ?? 0, kept)}`);
    if (head) say(`${paint("gray", "head")}  ${head.hash}`);
  }
  return fine ? EXIT.fine : EXIT.failed;
}

/** "600 rows from 2026-01-01 00:00:00 UTC on; before it, sums of 400 rows" */
function rowsThere(all: number, kept: VerifyResult["kept"]): string {
  if (!kept || kept.prunedRows === 0) return plural(all, "row");
  const since = kept.oldest == null ? "" : ` from ${moment(kept.oldest)} on`;
  return `${plural(all - kept.prunedRows, "row")}${since}; before it, sums of ${plural(kept.prunedRows, "row")}`;
}

async function adjust(given: CliInput): Promise<number> {
  await using door = await storeDoor(given);
  const asked = { attempt: given.words[0], usd: given.text("usd"), reason: given.text("reason") };
  const { attempt, costNano } = (await door.ask("ledger.adjust", asked as JsonObject)) as {
    attempt: string;
    costNano: string;
  };
  if (given.json) sayJson({ attempt, costNano });
  else say(`${attempt}  ${formatUsd(BigInt(costNano))}`);
  return EXIT.fine;
}

async function exported(given: CliInput): Promise<number> {
  const csv = given.has("csv");
  if (csv && given.json)
    fail("invalid", "Say one of --json and --csv: not two.", { code: "usage" });
  await using door = await storeDoor(given);
  let count = 0;
  if (csv) process.stdout.write(csvLine(ROW_COLUMNS));
  for await (const entry of entries(door, whichOf(given))) {
    if (csv) process.stdout.write(rowLine(entry));
    else say(JSON.stringify(entry));
    count++;
  }
  remark(paintRemark("gray", plural(count, "row")));
  return EXIT.fine;
}
