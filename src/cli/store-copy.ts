// A ledger moves from one kind of store to another: rows while the gateway serves, and the rest when it has ended. What was copied once is not
// copied again, so the pause is as short as what came since.
import { resolve } from "node:path";
import type { GatewayConfig } from "../config/types.ts";
import { idleStore } from "../gateway/keeping/idle-store.ts";
import { plural } from "../lib/text.ts";
import { fail, faultOf } from "../model/error.ts";
import type { LedgerMoving, MovedIn, MovedOut } from "../plugin/moving.ts";
import { took } from "./amounts.ts";
import { type CliCommand, type CliInput, CONFIG, EXIT } from "./command.ts";
import { configFile, load, nameOf, quietLog } from "./loading.ts";
import { formatUsd } from "../money/format.ts";
import { paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "store copy --to <store> [options]",
  about:
    "Copies all of a ledger into another kind of store: rows, keys, accounts, prices, what limits have counted, what operators did. A store is a gateway.yaml " +
    "that mounts it, or its name, with --from-with and --to-with for its options. While a gateway serves, rows are copied and nothing else; run it again " +
    "when all gateways have ended, and what came since is copied, with the rest. The new ledger's chain begins with the hash of the old one, and is " +
    "used only when both come to the same sums.",
  options: {
    from: { value: "store", about: "the store that is left; without it that of gateway.yaml" },
    to: { value: "store", about: "the store that is moved into, which has to be empty" },
    "from-with": { value: "json", about: "options of a store that --from names" },
    "to-with": { value: "json", about: "options of a store that --to names" },
    ...CONFIG,
  },
  words: { least: 1, most: 1 },
  examples: [
    `tollgate store copy --to postgres --to-with '{"url":"\${env:TOLLGATE_DATABASE_URL}"}'`,
    "tollgate store copy --from fleet.yaml --to gateway.yaml",
  ],
  run: copy,
};

/** What one run has done. */
interface Copied {
  /** Whether all of it is there. */
  readonly done: boolean;
  readonly rows: number;
  readonly ms: number;
  /** How long no gateway could write. */
  readonly pauseMs?: number;
  readonly head?: string | undefined;
  readonly from?: string | undefined;
  readonly calls?: number;
  readonly usd?: string;
  /** Which gateway is open on it. */
  readonly why?: string;
}

async function copy(given: CliInput): Promise<number> {
  const named = given.text("to");
  if (named === undefined)
    return fail("invalid", "Say where to: --to postgres. See tollgate store copy --help.", {
      code: "usage",
    });
  const own = configFile(given);
  const from = await configOf(own, given.text("from"), given.text("from-with"));
  const to = await configOf(own, named, given.text("to-with"));
  const { log } = quietLog();
  await using left = await idleStore(from, log);
  await using entered = await idleStore(to, log);
  await using out = await movingOf(left.store, from).out();
  await using into = await movingOf(entered.store, to).in();
  const copied = await moved(out, into);
  if (given.json) sayJson(copied);
  else tell(copied, to.store.use);
  return EXIT.fine;
}

async function moved(out: MovedOut, into: MovedIn): Promise<Copied> {
  const began = performance.now();
  const since = (at: number) => Math.round(performance.now() - at);
  let rows = 0;
  let after = into.after;
  const catchUp = async (): Promise<void> => {
    for (let more = true; more;) {
      const page = await out.rows(after);
      if (page.rows.length > 0 || page.next !== after) await into.take(page);
      rows += page.rows.length;
      ({ next: after, more } = page);
    }
  };
  await catchUp();
  const paused = performance.now();
  try {
    await out.quiet();
  } catch (error) {
    const fault = faultOf(error);
    if (fault?.code !== "in_use") throw error;
    return { done: false, rows, ms: since(began), why: fault.message };
  }
  await catchUp();
  const rest = await out.rest();
  const { head, totals } = await into.finish(rest);
  return {
    done: true,
    rows,
    ms: since(began),
    pauseMs: since(paused),
    head: head ?? undefined,
    from: rest.head ?? undefined,
    calls: totals.reduce((sum, { calls }) => sum + calls, 0),
    usd: formatUsd(totals.reduce((sum, { costNano }) => sum + costNano, 0n)),
  };
}

function tell({ done, rows, ms, pauseMs, head, from, calls, usd, why }: Copied, use: string): void {
  say(`${plural(rows, "row")} copied, ${took(ms)}`);
  if (!done) {
    remark(
      paintRemark(
        "yellow",
        `${why} End it, and run this again: what came since is copied, and the rest.`,
      ),
    );
    return;
  }
  say(`${paint("green", "the same sums")}  ${plural(calls!, "call")}, ${usd}`);
  if (from !== undefined) say(`${paint("gray", "from")}  ${from}`);
  if (head !== undefined) say(`${paint("gray", "head")}  ${head}`);
  remark(
    paintRemark(
      "gray",
      `Nobody wrote for ${took(pauseMs!)}. Mount store: ${use} in gateway.yaml, and start it.`,
    ),
  );
}

function movingOf(
  store: { moving?: LedgerMoving | undefined },
  { store: { use } }: Mounted,
): LedgerMoving {
  return (
    store.moving ??
    fail("conflict", `The store "${use}" is none that moves.`, { code: "store_cannot" })
  );
}

type Mounted = Pick<GatewayConfig, "store" | "file" | "stateDir">;

/** Of a gateway.yaml, or of a store's name: that of gateway.yaml itself, where it has that one. */
async function configOf(
  own: string | undefined,
  named: string | undefined,
  options: string | undefined,
): Promise<Mounted> {
  const { config } = await load(own);
  if (named === undefined || (named === config?.store.use && options === undefined))
    return config ?? broken(own);
  if (/\.ya?ml$/.test(named)) {
    const other = resolve(named);
    return (await load(other)).config ?? broken(other);
  }
  const text = `store: { use: ${JSON.stringify(named)}, with: ${options ?? "{}"} }\nproviders: { demo: { use: demo } }\n${
    config ? `state_dir: ${JSON.stringify(config.stateDir)}\n` : ""
  }`;
  const found = await load(own, { text });
  return (
    found.config ??
    fail(
      "invalid",
      found.problems.map(({ message }) => message).join("; ") || `There is no store "${named}".`,
      { code: "usage" },
    )
  );
}

const broken = (file: string | undefined): never =>
  fail("invalid", `${nameOf(file)} has errors, see tollgate check.`);
