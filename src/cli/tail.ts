import { wallClock } from "../lib/wall-clock.ts";
import type { RequestPage } from "../gateway/control/request-commands.ts";
import { askControl } from "../gateway/control/asking.ts";
import { fail } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { type CliCommand, type CliInput, EXIT, PLACE } from "./command.ts";
import { following, type Following } from "./following.ts";
import { stateDirOf } from "./loading.ts";
import { requestLine } from "./request-words.ts";
import { sayRows } from "./rows.ts";
import { momentOf, WHICH } from "./since.ts";
import { paintRemark, remark, say } from "./terminal.ts";

const PAGE = 500;
const WAIT_MS = 10_000;
/** What was over in the last minutes is shown first. */
const BEFORE_MS = 600_000;
const ALL = 100_000;

export const command: CliCommand = {
  usage: "tail [options]",
  about:
    "Shows requests as they end, refused ones too, from the last ten minutes on until Ctrl-C: when, id, status, how long it " +
    "took, key, model, what it used and cost, why it failed. tollgate request <id> says all of one. With --json each is a line " +
    "of JSON. A reader that is too slow is told how many it missed. --rows reads the ledger instead: a line for each call and " +
    "for each correction, also while no gateway runs.",
  options: {
    ...PLACE,
    ...WHICH,
    failed: { about: "only those that were refused, failed or broke off" },
    model: {
      value: "model",
      about:
        'only of this model, as asked for or as served; one star stands for anything: "openai/*"',
    },
    once: { about: "print what is there, and end" },
    rows: { about: "rows of the ledger" },
  },
  examples: [
    "tollgate tail --failed",
    "tollgate tail --key laptop --model 'openai/*' --since 1h --once --json",
    "tollgate tail --rows --since 24h",
  ],
  async run(given) {
    using live = following();
    if (given.has("rows")) {
      only(given, ["failed", "model"], "--rows reads the ledger, which does not know");
      return await sayRows(given, live);
    }
    only(given, ["account", "until"], "Only tail --rows takes");
    return await sayRequests(given, live);
  },
};

function only(given: CliInput, names: readonly string[], why: string): void {
  const name = names.find((each) => given.has(each) || given.text(each) !== undefined);
  if (name !== undefined) fail("invalid", `${why} --${name}.`, { code: "usage" });
}

async function sayRequests(given: CliInput, live: Following): Promise<number> {
  const folder = await stateDirOf(given);
  const said = momentOf(given, "since");
  const which: JsonObject = {
    ...optional("key", given.text("key")),
    ...optional("model", given.text("model")),
    ...optional("failed", given.has("failed") || undefined),
    from: said ?? wallClock() - BEFORE_MS,
    limit: PAGE,
  };
  const follow = !given.has("once");
  let after: number | undefined;
  for (;;) {
    const place = after === undefined ? { last: ALL } : { after, waitMs: follow ? WAIT_MS : 0 };
    const page = await unless(live, askControl(folder, "requests.list", { ...which, ...place }));
    if (!page) return EXIT.fine;
    const { items, next, missed, since } = page as unknown as RequestPage;
    if (after === undefined && said !== undefined && said < since) tellReach(since);
    if (after !== undefined && missed > 0)
      remark(paintRemark("yellow", `${missed} requests were over too fast to be shown.`));
    for (const item of items) say(given.json ? JSON.stringify(item) : requestLine(item));
    await live.drained();
    if (live.signal.aborted || (!follow && items.length < PAGE)) return EXIT.fine;
    after = next;
  }
}

const tellReach = (since: number): void =>
  remark(
    paintRemark(
      "gray",
      `Requests are remembered since ${new Date(since).toISOString()}. tollgate tail --rows reads the ledger, which has no refusals.`,
    ),
  );

/** Undefined: it was ended meanwhile. */
const unless = (live: Following, asked: Promise<Json>): Promise<Json | undefined> =>
  Promise.race([
    asked,
    new Promise<undefined>((resolve) => {
      if (live.signal.aborted) resolve(undefined);
      live.signal.addEventListener("abort", () => resolve(undefined), { once: true });
    }),
  ]);

const optional = (name: string, value: Json | undefined): JsonObject =>
  value === undefined ? {} : { [name]: value };
