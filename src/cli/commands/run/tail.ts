import { wallClock } from "../../../lib/time/wall-clock.ts";
import type { RequestPage } from "../../../admin/commands/request-commands.ts";
import { LEDGER_FILTER } from "../../../admin/schema/schema-fields.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import { fail } from "../../../model/error.ts";
import type { Json } from "../../../model/values.ts";
import { type CliCommand, type CliInput, EXIT_CODES } from "../../support/command.ts";
import { describeCommand, readCommandInput } from "../../support/gateway-command.ts";
import { startLongRunning, type LongRunning, tailRows } from "../../support/ledger-tail.ts";
import { findStateDir } from "../../support/load-config.ts";
import { formatRequestLine } from "../../format/request-line.ts";
import { paintRemark, printRemark, print } from "../../format/terminal.ts";

const PAGE = 500;
const WAIT_MS = 10_000;
/** Age in milliseconds of the oldest finished requests that are shown first. */
const INITIAL_WINDOW_MS = 600_000;
const MAX_ITEMS = 100_000;

/** Members of `requests.list` that the command sets itself, or that have no option. */
const SET_MEMBERS = ["after", "last", "limit", "waitMs", "account", "status"];
/** Filters of the ledger that have no option here. */
const HIDDEN_FILTERS = Object.keys(LEDGER_FILTER).filter(
  (name) => !["key", "account", "from", "to"].includes(name),
);

export const command: CliCommand = {
  ...describeCommand("requests.list", {
    omit: SET_MEMBERS,
    options: {
      ...describeCommand("ledger.entries", { omit: HIDDEN_FILTERS }).options,
      once: { description: "Print existing requests and exit" },
      rows: { description: "Show ledger rows" },
    },
  }),
  async run(given) {
    using live = startLongRunning();
    if (given.has("rows")) {
      rejectOptions(given, ["failed", "model"], "--rows reads the ledger, which does not record");
      return await tailRows(given, live, HIDDEN_FILTERS);
    }
    rejectOptions(given, ["account", "until"], "Only tail --rows supports");
    return await tailRequests(given, live);
  },
};

function rejectOptions(given: CliInput, names: readonly string[], why: string): void {
  const name = names.find((each) => given.has(each) || given.getText(each) !== undefined);
  if (name !== undefined) fail("invalid", `${why} --${name}.`, { code: "usage" });
}

async function tailRequests(given: CliInput, live: LongRunning): Promise<number> {
  const folder = await findStateDir(given);
  const read = readCommandInput("requests.list", given, SET_MEMBERS);
  const since = read["from"] as number | undefined;
  const which = { ...read, from: since ?? wallClock() - INITIAL_WINDOW_MS, limit: PAGE };
  const follow = !given.has("once");
  let after: number | undefined;
  for (;;) {
    const place =
      after === undefined ? { last: MAX_ITEMS } : { after, waitMs: follow ? WAIT_MS : 0 };
    const page = await orAborted(
      live,
      callControl(folder, "requests.list", { ...which, ...place }),
    );
    if (!page) return EXIT_CODES.ok;
    const { items, next, missed, rememberedSince } = page as unknown as RequestPage;
    if (after === undefined && since !== undefined && since < rememberedSince)
      printReach(rememberedSince);
    if (after !== undefined && missed > 0)
      printRemark(
        paintRemark("yellow", `${missed} requests were dropped because the output fell behind.`),
      );
    for (const item of items) print(given.json ? JSON.stringify(item) : formatRequestLine(item));
    await live.waitForDrain();
    if (live.signal.aborted || (!follow && items.length < PAGE)) return EXIT_CODES.ok;
    after = next;
  }
}

const printReach = (since: number): void =>
  printRemark(
    paintRemark(
      "gray",
      `Request history starts at ${new Date(since).toISOString()}. For older calls, use tollgate tail --rows, which reads the ledger and omits rejected requests.`,
    ),
  );

/** Resolves with undefined if the command has ended in the meantime. */
const orAborted = (live: LongRunning, response: Promise<Json>): Promise<Json | undefined> =>
  Promise.race([
    response,
    new Promise<undefined>((resolve) => {
      if (live.signal.aborted) resolve(undefined);
      live.signal.addEventListener("abort", () => resolve(undefined), { once: true });
    }),
  ]);
