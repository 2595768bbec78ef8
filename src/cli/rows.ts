// Rows of the ledger, live or as they are in the files: a line for each call as it is settled, and for each correction.
import { wallClock } from "../lib/wall-clock.ts";
import { plural } from "../lib/text.ts";
import type { Json } from "../model/values.ts";
import { inputTokens, outputTokens } from "../model/usage.ts";
import { formatUsd } from "../money/format.ts";
import type { Entry, ResultPage } from "../plugin/store.ts";
import { type CliInput, EXIT } from "./command.ts";
import type { Following } from "./following.ts";
import { whichOf } from "./since.ts";
import { storeDoor, type StoreDoor } from "./store.ts";
import { columns, moment, paint, remark, say } from "./terminal.ts";

/** How often a running gateway is asked for what is new. */
const EVERY_MS = 400;
const PAGE = 500;

/** From the last ten minutes on, unless told otherwise; while no gateway runs, what is there. */
export async function sayRows(given: CliInput, live: Following): Promise<number> {
  await using door = await storeDoor(given);
  const which = { from: wallClock() - 600_000, ...defined(whichOf(given)) };
  const follow = door.live && !given.has("once") && given.text("until") === undefined;
  let after: string | undefined;
  do {
    for await (const entry of entries(door, which, after)) {
      after = String(entry.seq);
      if (given.json) say(JSON.stringify(entry));
      else if (entry.kind !== "reserve") say(line(entry));
    }
    await live.drained();
    if (follow) await live.pause(EVERY_MS);
  } while (follow && !live.signal.aborted);
  if (after === undefined && !given.json) remark("Nothing was used.");
  return EXIT.fine;
}

/** Page after page, until there is nothing new. */
export async function* entries(
  door: StoreDoor,
  which: Readonly<Record<string, Json | undefined>>,
  after?: string,
): AsyncGenerator<Entry> {
  for (;;) {
    const page = (await door.ask("ledger.entries", {
      ...which,
      after,
      limit: PAGE,
    })) as unknown as ResultPage<Entry>;
    yield* page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
}

const defined = (of: object) =>
  Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined));

const COLOUR = {
  exact: "green",
  estimated: "yellow",
  unpriced: "yellow",
  void: "gray",
  open: "gray",
} as const;

function line(entry: Entry): string {
  const { at, key, target, state, usage, costNano, outcome, kind } = entry;
  const cost = costNano === null ? "no known price" : formatUsd(BigInt(costNano));
  const pictures = usage.images ? `${plural(usage.images, "image")}, ` : "";
  return columns([
    [
      paint("gray", moment(at).slice(0, 19)),
      key,
      `${target.provider}/${target.model}`,
      kind === "adjust"
        ? `corrected by ${cost}`
        : `${pictures}${inputTokens(usage)} in, ${outputTokens(usage)} out, ${cost}`,
      paint(COLOUR[state], state) + (outcome === "ok" ? "" : paint("gray", ` (${outcome})`)),
    ],
  ]);
}
