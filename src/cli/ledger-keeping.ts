// How large the ledger is, archives of it, and sums in the place of its rows, on the command line.
import { resolve } from "node:path";
import { wallClock } from "../lib/wall-clock.ts";
import type { ArchiveMade, PruneAnswer } from "../gateway/control/keeping-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { cannot } from "../gateway/keeping/cannot.ts";
import { idleStore } from "../gateway/keeping/idle-store.ts";
import { parseDuration } from "../lib/duration.ts";
import { plural } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import { formatUsd } from "../money/format.ts";
import type { LedgerState, PrunePlan } from "../plugin/keeping.ts";
import { sizeOf, took } from "./amounts.ts";
import { type CliInput, EXIT, type Part, PLACE } from "./command.ts";
import { configFile, load, nameOf, quietLog } from "./loading.ts";
import { storeDoor } from "./store.ts";
import { moment, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

export const KEEPING: Readonly<Record<"state" | "archive" | "prune", Part>> = {
  state: {
    usage: "ledger state [options]",
    summary: COMMANDS["ledger.state"].summary,
    about:
      "Says how large the ledger is on the disk, when its oldest row was written, and how many rows sums stand for.",
    options: PLACE,
    examples: ["tollgate ledger state"],
    run: state,
  },
  archive: {
    usage: "ledger archive <file> [options]",
    summary: COMMANDS["ledger.archive"].summary,
    about:
      "Writes rows as lines of JSON, compressed (gzip), with the proof that they are what was written. Rows stay where they are. With " +
      "--verify an archive is read and proved with nothing but itself.",
    options: {
      before: { value: "when", about: "rows from before 400d ago, or before 2026-01-01 (UTC)" },
      "no-labels": { about: "leave out what labels say" },
      verify: { about: "read it, and say whether it is what was written" },
      head: { value: "hash", about: "with --verify: the last hash that it must have" },
      ...PLACE,
    },
    words: { least: 1, most: 1 },
    examples: [
      "tollgate ledger archive 2026.jsonl.gz --before 2027-01-01",
      "tollgate ledger archive 2026.jsonl.gz --verify",
    ],
    run: (given) => (given.has("verify") ? verified(given) : archived(given)),
  },
  prune: {
    usage: "ledger prune [options]",
    summary: COMMANDS["ledger.prune"].summary,
    about:
      "Takes out whole commits from the beginning on, and puts their sums in their place: reports, budgets and the proof stay what they were, " +
      "but for the rows themselves and for labels. It goes in short steps between those of a gateway that serves, and goes on where it was " +
      "when it was interrupted. Rows stay as long as an older call is open. --dry-run says what it would do.",
    options: {
      older: { value: "span", about: "rows that are older than this, as in 400d" },
      "dry-run": { about: "say how many rows, how many bytes and how long, and do nothing" },
      "archive-first": { value: "file", about: "write the rows into an archive before they go" },
      ...PLACE,
    },
    examples: [
      "tollgate ledger prune --older 400d --dry-run",
      "tollgate ledger prune --older 400d --archive-first old.jsonl.gz",
    ],
    run: prune,
  },
};

async function state(given: CliInput): Promise<number> {
  await using door = await storeDoor(given);
  const found = (await door.ask("ledger.state", {})) as unknown as LedgerState;
  if (given.json) sayJson(found);
  else {
    const since = found.oldest == null ? "no rows" : `rows since ${moment(found.oldest)}`;
    const sums =
      found.prunedRows > 0 ? `, and sums of ${plural(found.prunedRows, "older row")}` : "";
    say(`${sizeOf(found.bytes)}, ${since}${sums}`);
  }
  return EXIT.fine;
}

/** Before 400d ago, or before a date. */
function momentOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const span = parseDuration(text);
  const at = span === undefined ? Date.parse(text) : wallClock() - span;
  return Number.isNaN(at)
    ? fail("invalid", `--${option} is a time, as in 400d or 2026-01-01, not "${text}".`, {
        code: "usage",
      })
    : Math.max(0, at);
}

async function archived(given: CliInput): Promise<number> {
  const before = momentOf(given.text("before"), "before");
  await using door = await storeDoor(given);
  const made = (await door.ask("ledger.archive", {
    file: resolve(given.words[0]!),
    before,
    labels: !given.has("no-labels"),
  })) as unknown as ArchiveMade;
  if (given.json) sayJson(made);
  else tellArchive(made);
  return EXIT.fine;
}

function tellArchive({ file, bytes, ms, rows, head }: ArchiveMade): void {
  say(`${file}  ${plural(rows, "row")}, ${sizeOf(bytes)}, ${took(ms)}`);
  say(`${paint("gray", "head")}  ${head}`);
}

async function verified(given: CliInput): Promise<number> {
  const file = configFile(given);
  const { config } = await load(file);
  if (!config) return fail("invalid", `${nameOf(file)} has errors, see tollgate check.`);
  await using idle = await idleStore(config, quietLog().log);
  const read = idle.store.keeping?.readArchive ?? cannot(config.store.use, "reads archives");
  const found = await read(resolve(given.words[0]!));
  const { problems, rows, from, to, head, total } = found;
  const wanted = given.text("head");
  const other = wanted !== undefined && wanted !== head;
  const fine = problems.length === 0 && !other;
  if (given.json) sayJson({ ok: fine, ...found });
  else {
    for (const { path, message } of problems) say(`${paint("red", path)}  ${message}`);
    if (other) say(`${paint("red", "head")}  It ends with ${head}, not with ${wanted}.`);
    const span = from == null || to == null ? "" : `, ${moment(from)} to ${moment(to)}`;
    if (fine)
      say(
        `${paint("green", "as it was written")}  ${plural(rows, "row")}${span}, ${formatUsd(total.costNano)}`,
      );
    say(`${paint("gray", "head")}  ${head}`);
  }
  return fine ? EXIT.fine : EXIT.failed;
}

async function prune(given: CliInput): Promise<number> {
  const older = given.text("older");
  const span = older === undefined ? undefined : parseDuration(older);
  if (span === undefined)
    return fail("invalid", "Say how old: --older 400d. See tollgate ledger prune --help.", {
      code: "usage",
    });
  const first = given.text("archive-first");
  await using door = await storeDoor(given);
  const answer = (await door.ask("ledger.prune", {
    before: Math.max(0, wallClock() - span),
    dryRun: given.has("dry-run"),
    archive: first === undefined ? undefined : resolve(first),
  })) as unknown as PruneAnswer;
  if (given.json) sayJson(answer);
  else if (answer.done === null) tellPlan(answer.plan);
  else {
    const { rows, bytes, ms, longestMs, archive } = answer.done;
    if (archive) tellArchive(archive);
    say(`${plural(rows, "row")} pruned, ${sizeOf(bytes)} given back, ${took(ms)}`);
    remark(paintRemark("gray", `the longest step took ${longestMs.toFixed(1)} ms`));
    tellOpen(answer.plan);
  }
  return EXIT.fine;
}

function tellPlan(plan: PrunePlan): void {
  const { rows, bytes, ms, from, to } = plan;
  const when = from == null || to == null ? "" : `, ${moment(from)} to ${moment(to)}`;
  say(`${plural(rows, "row")} would go${when}: about ${sizeOf(bytes)}, in about ${took(ms)}`);
  tellOpen(plan);
}

function tellOpen({ open }: PrunePlan): void {
  if (open)
    remark(
      paintRemark("yellow", `Rows stay from ${moment(open.at)} on: call ${open.attempt} is open.`),
    );
}
