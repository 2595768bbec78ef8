// Copies a ledger from one kind of store to another: the rows while the gateway is running, and the
// rest after it has stopped. Rows that an earlier run copied are skipped, so the pause depends only
// on newer rows.
import { resolve } from "node:path";
import type { GatewayConfig } from "../../../config/gateway-config.ts";
import { createClosedStore } from "../../../admin/backup/restore.ts";
import { plural } from "../../../lib/text.ts";
import { fail, getFault } from "../../../model/error.ts";
import type {
  LedgerTransfer,
  LedgerImport,
  LedgerExport,
} from "../../../plugin/store/ledger-transfer.ts";
import {
  formatSeconds,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";
import {
  type CliCommand,
  type CliInput,
  CONFIG_OPTIONS,
  EXIT_CODES,
} from "../../support/command.ts";
import {
  configFile,
  failInvalidConfig,
  loadGatewayConfig,
  quietLog,
  requireGatewayConfig,
} from "../../support/load-config.ts";
import { formatUsd } from "../../../money/decimal.ts";

export const command: CliCommand = {
  usage: "store copy --to <store> [options]",
  description:
    "Copies a whole ledger into another type of store: rows, keys, accounts, prices, " +
    "limit usage, and the audit log. A store is named by a gateway.yaml that mounts " +
    "it, or by its plugin name with options in --from-with and --to-with. While a " +
    "gateway is running, only rows are copied. After all gateways have stopped, run the " +
    "command again to copy the remaining rows and everything else. The new ledger's " +
    "chain starts with the hash of the old ledger. It is used only if the totals of " +
    "both match.",
  options: {
    from: {
      placeholder: "store",
      description: "Source store (default: the store of gateway.yaml)",
    },
    to: {
      placeholder: "store",
      description: "Target store, which must be empty",
    },
    "from-with": { placeholder: "json", description: "Options of the store in --from" },
    "to-with": { placeholder: "json", description: "Options of the store in --to" },
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
  /** Time in milliseconds during which no gateway could write. */
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
    return fail(
      "invalid",
      "Missing target store. Pass --to, such as --to postgres. See tollgate store copy " +
        "--help.",
      {
        code: "usage",
      },
    );
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
        `${openBy} Stop it and run this command again to copy the remaining rows and everything else.`,
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
      `Writes were paused for ${formatSeconds(pauseMs!)}. Set store: ${use} in gateway.yaml and start the gateway.`,
    ),
  );
}

function requireTransfer(
  store: { transfer?: LedgerTransfer | undefined },
  { store: { use } }: StoreConfig,
): LedgerTransfer {
  return (
    store.transfer ??
    fail("conflict", `The store "${use}" does not support copying.`, { code: "store_cannot" })
  );
}

type StoreConfig = Pick<GatewayConfig, "store" | "file" | "bounds" | "stateDir">;

/**
 * Returns the config of a store. `named`: a gateway.yaml or the name of a store. For a name, the
 * options in the current gateway.yaml are used if it mounts that store.
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
    return (await requireGatewayConfig(other)).config;
  }
  const text = `store: { use: ${JSON.stringify(named)}, with: ${options ?? "{}"} }\nproviders: { demo: { use: demo } }\n${
    config ? `state_dir: ${JSON.stringify(config.stateDir)}\n` : ""
  }`;
  const found = await loadGatewayConfig(own, { text });
  return (
    found.config ??
    fail(
      "invalid",
      found.problems.map(({ message }) => message).join("; ") || `Unknown store "${named}".`,
      { code: "usage" },
    )
  );
}
