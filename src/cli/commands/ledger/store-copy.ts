// Copies a ledger from one kind of store to another: rows while the gateway serves, and the rest
// after it has ended. Rows that an earlier run copied are skipped, so the pause depends only on the
// rows since then.
import { resolve } from "node:path";
import type { GatewayConfig } from "../../../config/gateway-config.ts";
import { createClosedStore } from "../../../admin/backup/closed-store.ts";
import { plural } from "../../../lib/text.ts";
import { fail, getFault } from "../../../model/error.ts";
import type {
  LedgerTransfer,
  LedgerImport,
  LedgerExport,
} from "../../../plugin/store/ledger-transfer.ts";
import { formatSeconds } from "../../format/format-amounts.ts";
import {
  type CliCommand,
  type CliInput,
  CONFIG_OPTIONS,
  EXIT_CODES,
} from "../../support/command.ts";
import { configFile, loadGatewayConfig, configName, quietLog } from "../../support/load-config.ts";
import { formatUsd } from "../../../money/format-usd.ts";
import { paint, paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "store copy --to <store> [options]",
  description:
    "Copies all of a ledger into another kind of store: rows, keys, accounts, prices, what limits have counted, what operators did. A store is a gateway.yaml " +
    "that mounts it, or its name, with --from-with and --to-with for its options. While a gateway serves, rows are copied and nothing else; run it again " +
    "when all gateways have ended, and what came since is copied, with the rest. The new ledger's chain begins with the hash of the old one, and is " +
    "used only when both come to the same sums.",
  options: {
    from: {
      placeholder: "store",
      description: "the store that is left; without it that of gateway.yaml",
    },
    to: {
      placeholder: "store",
      description: "the store that is moved into, which has to be empty",
    },
    "from-with": { placeholder: "json", description: "options of a store that --from names" },
    "to-with": { placeholder: "json", description: "options of a store that --to names" },
    ...CONFIG_OPTIONS,
  },
  positionals: { least: 1, most: 1 },
  examples: [
    `tollgate store copy --to postgres --to-with '{"url":"\${env:TOLLGATE_DATABASE_URL}"}'`,
    "tollgate store copy --from fleet.yaml --to gateway.yaml",
  ],
  run: copy,
};

/** Result of one run. */
interface CopyResult {
  /** Whether the whole ledger is copied. */
  readonly done: boolean;
  readonly rows: number;
  readonly ms: number;
  /** Time in milliseconds in which no gateway could write. */
  readonly pauseMs?: number;
  readonly head?: string | undefined;
  readonly from?: string | undefined;
  readonly calls?: number;
  readonly usd?: string;
  /** The gateway that has the source open. Set if the copy is incomplete. */
  readonly openBy?: string;
}

async function copy(given: CliInput): Promise<number> {
  const named = given.getText("to");
  if (named === undefined)
    return fail("invalid", "Say where to: --to postgres. See tollgate store copy --help.", {
      code: "usage",
    });
  const own = configFile(given);
  const from = await readStoreConfig(own, given.getText("from"), given.getText("from-with"));
  const to = await readStoreConfig(own, named, given.getText("to-with"));
  const { log } = quietLog();
  await using left = await createClosedStore(from, log);
  await using entered = await createClosedStore(to, log);
  await using out = await requireTransfer(left.store, from).openExport();
  await using into = await requireTransfer(entered.store, to).openImport();
  const copied = await transferLedger(out, into);
  if (given.json) printJson(copied);
  else printResult(copied, to.store.use);
  return EXIT_CODES.ok;
}

async function transferLedger(out: LedgerExport, into: LedgerImport): Promise<CopyResult> {
  const began = performance.now();
  const since = (at: number) => Math.round(performance.now() - at);
  let rows = 0;
  let after = into.after;
  const catchUp = async (): Promise<void> => {
    for (let more = true; more;) {
      const page = await out.readRows(after);
      if (page.rows.length > 0 || page.next !== after) await into.writeRows(page);
      rows += page.rows.length;
      ({ next: after, more } = page);
    }
  };
  await catchUp();
  const paused = performance.now();
  try {
    await out.stopWrites();
  } catch (error) {
    const fault = getFault(error);
    if (fault?.code !== "in_use") throw error;
    return { done: false, rows, ms: since(began), openBy: fault.message };
  }
  await catchUp();
  const rest = await out.readRemainder();
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

function printResult(
  { done, rows, ms, pauseMs, head, from, calls, usd, openBy }: CopyResult,
  use: string,
): void {
  print(`${plural(rows, "row")} copied, ${formatSeconds(ms)}`);
  if (!done) {
    printRemark(
      paintRemark(
        "yellow",
        `${openBy} End it, and run this again: what came since is copied, and the rest.`,
      ),
    );
    return;
  }
  print(`${paint("green", "the same sums")}  ${plural(calls!, "call")}, ${usd}`);
  if (from !== undefined) print(`${paint("gray", "from")}  ${from}`);
  if (head !== undefined) print(`${paint("gray", "head")}  ${head}`);
  printRemark(
    paintRemark(
      "gray",
      `Nobody wrote for ${formatSeconds(pauseMs!)}. Mount store: ${use} in gateway.yaml, and start it.`,
    ),
  );
}

function requireTransfer(
  store: { transfer?: LedgerTransfer | undefined },
  { store: { use } }: StoreConfig,
): LedgerTransfer {
  return (
    store.transfer ??
    fail("conflict", `The store "${use}" does not support moving its data.`, {
      code: "store_cannot",
    })
  );
}

type StoreConfig = Pick<GatewayConfig, "store" | "file" | "stateDir">;

/**
 * Returns the config of a store. `named` is a gateway.yaml or a store's name. For a name, uses the
 * options in the current gateway.yaml if it mounts that store.
 */
async function readStoreConfig(
  own: string | undefined,
  named: string | undefined,
  options: string | undefined,
): Promise<StoreConfig> {
  const { config } = await loadGatewayConfig(own);
  if (named === undefined || (named === config?.store.use && options === undefined))
    return config ?? failInvalidConfig(own);
  if (/\.ya?ml$/.test(named)) {
    const other = resolve(named);
    return (await loadGatewayConfig(other)).config ?? failInvalidConfig(other);
  }
  const text = `store: { use: ${JSON.stringify(named)}, with: ${options ?? "{}"} }\nproviders: { demo: { use: demo } }\n${
    config ? `state_dir: ${JSON.stringify(config.stateDir)}\n` : ""
  }`;
  const found = await loadGatewayConfig(own, { text });
  return (
    found.config ??
    fail(
      "invalid",
      found.problems.map(({ message }) => message).join("; ") || `There is no store "${named}".`,
      { code: "usage" },
    )
  );
}

const failInvalidConfig = (file: string | undefined): never =>
  fail("invalid", `${configName(file)} has errors, see tollgate check.`);
