// Prints ledger rows, live or from the store: a line for each settled call and for each adjustment.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { plural } from "../../lib/text.ts";
import type { Json } from "../../model/values.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import { formatUsd } from "../../money/decimal.ts";
import type { LedgerEntry, ResultPage } from "../../plugin/store/store.ts";
import { type CliInput, EXIT_CODES } from "./command.ts";
import { readCommandInput } from "./gateway-command.ts";
import { openStoreAccess, type StoreAccess } from "./store-access.ts";
import { alignColumns, formatTime, paint, printRemark, print } from "../format/terminal.ts";
import { setTimeout as sleep } from "node:timers/promises";

/** Interval in milliseconds at which a running gateway is polled. */
const POLL_MS = 400;
const PAGE = 500;

/**
 * Prints rows of the last 10 minutes by default, and then follows. If no gateway runs, prints the
 * existing rows and ends.
 * @param hiddenFilters Members of `ledger.entries` that are not options of the command.
 */
export async function tailRows(
  given: CliInput,
  live: LongRunning,
  hiddenFilters: readonly string[],
): Promise<number> {
  const read = readCommandInput("ledger.entries", given, hiddenFilters);
  const which = { from: wallClock() - 600_000, ...read };
  await using door = await openStoreAccess(given);
  const follow = door.isLive && !given.has("once") && given.getText("until") === undefined;
  let after: string | undefined;
  do {
    for await (const entry of readEntries(door, which, after)) {
      after = String(entry.seq);
      if (given.json) print(JSON.stringify(entry));
      else if (entry.kind !== "reserve") print(formatEntry(entry));
    }
    await live.waitForDrain();
    if (follow) await live.sleep(POLL_MS);
  } while (follow && !live.signal.aborted);
  if (after === undefined && !given.json) printRemark("No usage found.");
  return EXIT_CODES.ok;
}

/** Yields the rows of all pages. */
export async function* readEntries(
  door: StoreAccess,
  which: Readonly<Record<string, Json | undefined>>,
  after?: string,
): AsyncGenerator<LedgerEntry> {
  for (;;) {
    const page = (await door.run("ledger.entries", {
      ...which,
      after,
      limit: PAGE,
    })) as unknown as ResultPage<LedgerEntry>;
    yield* page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
}

const STATE_COLORS = {
  exact: "green",
  estimated: "yellow",
  unpriced: "yellow",
  void: "gray",
  external: "gray",
  open: "gray",
} as const;

function formatEntry(entry: LedgerEntry): string {
  const { at, key, target, state, usage, costNano, outcome, kind } = entry;
  const cost = costNano === null ? "no known price" : formatUsd(BigInt(costNano));
  const pictures = usage.images ? `${plural(usage.images, "image")}, ` : "";
  return alignColumns([
    [
      paint("gray", formatTime(at).slice(0, 19)),
      key,
      `${target.provider}/${target.model}`,
      kind === "adjust"
        ? `corrected by ${cost}`
        : `${pictures}${inputTokens(usage)} in, ${outputTokens(usage)} out, ${cost}`,
      paint(STATE_COLORS[state], state) + (outcome === "ok" ? "" : paint("gray", ` (${outcome})`)),
    ],
  ]);
}

// Support for commands that run until they are ended: by Ctrl-C, or because the reader of a pipe
// closes it.

export interface LongRunning extends Disposable {
  /** Aborts at Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
  /** Resolves after this time, or when the command ends. */
  sleep(ms: number): Promise<void>;
  /**
   * Resolves when the reader has consumed the output, or when the command ends. Waiting for this
   * keeps unread output from accumulating in memory.
   */
  waitForDrain(): Promise<void>;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function startLongRunning(): LongRunning {
  const over = new AbortController();
  const end = () => over.abort();
  for (const signal of SIGNALS) process.on(signal, end);
  const { signal } = over;
  return {
    signal,
    sleep: (ms) => sleep(ms, undefined, { signal }).catch(() => {}),
    waitForDrain: () =>
      new Promise((resolve) => {
        if (!process.stdout.writableNeedDrain || signal.aborted) return resolve();
        const done = () => {
          process.stdout.off("drain", done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        process.stdout.on("drain", done);
        signal.addEventListener("abort", done);
      }),
    [Symbol.dispose]() {
      for (const name of SIGNALS) process.off(name, end);
    },
  };
}
