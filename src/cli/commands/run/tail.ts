import { wallClock } from "../../../lib/time/wall-clock.ts";
import type { RequestPage } from "../../../admin/commands/request-commands.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import { fail } from "../../../model/error.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { startLongRunning, type LongRunning } from "../../support/long-running.ts";
import { findStateDir } from "../../support/load-config.ts";
import { formatRequestLine } from "../../format/request-line.ts";
import { tailRows } from "../../support/ledger-tail.ts";
import { parseTimeOption, LEDGER_FILTER_OPTIONS } from "../../format/ledger-filters.ts";
import { paintRemark, printRemark, print } from "../../format/terminal.ts";

const PAGE = 500;
const WAIT_MS = 10_000;
/** Age in milliseconds of the oldest finished requests that are shown first. */
const INITIAL_WINDOW_MS = 600_000;
const MAX_ITEMS = 100_000;

export const command: CliCommand = {
  usage: "tail [options]",
  description:
    "Shows requests as they finish, including rejected ones, until you press Ctrl-C. " +
    "It starts with the last 10 minutes. Each line has the time, ID, status, " +
    "duration, key, model, usage, cost, and error. For details of a request, use " +
    "tollgate request <id>. With --json, each request is a line of JSON. If the " +
    "reader falls behind, the output reports how many lines were dropped. With " +
    "--rows, it shows the ledger instead, with a line for each call and each " +
    "correction, also while no gateway is running.",
  options: {
    ...GATEWAY_OPTIONS,
    ...LEDGER_FILTER_OPTIONS,
    failed: { description: "Only requests that were rejected, failed, or were truncated" },
    model: {
      placeholder: "model",
      description:
        'Only this model, as requested or as served, with one star as wildcard: "openai/*"',
    },
    once: { description: "Print existing requests and exit" },
    rows: { description: "Show ledger rows" },
  },
  examples: [
    "tollgate tail --failed",
    "tollgate tail --key laptop --model 'openai/*' --since 1h --once --json",
    "tollgate tail --rows --since 24h",
  ],
  async run(given) {
    using live = startLongRunning();
    if (given.has("rows")) {
      rejectOptions(given, ["failed", "model"], "--rows reads the ledger, which does not record");
      return await tailRows(given, live);
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
  const said = parseTimeOption(given, "since");
  const which: JsonObject = {
    ...optional("key", given.getText("key")),
    ...optional("model", given.getText("model")),
    ...optional("failed", given.has("failed") || undefined),
    from: said ?? wallClock() - INITIAL_WINDOW_MS,
    limit: PAGE,
  };
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
    if (after === undefined && said !== undefined && said < rememberedSince)
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
const orAborted = (live: LongRunning, asked: Promise<Json>): Promise<Json | undefined> =>
  Promise.race([
    asked,
    new Promise<undefined>((resolve) => {
      if (live.signal.aborted) resolve(undefined);
      live.signal.addEventListener("abort", () => resolve(undefined), { once: true });
    }),
  ]);

const optional = (name: string, value: Json | undefined): JsonObject =>
  value === undefined ? {} : { [name]: value };
