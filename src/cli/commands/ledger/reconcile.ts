// Compares the ledger with a provider's bill, and corrects the ledger on request. The comparison is
// a command of the observer `reconcile`.
import { fail } from "../../../model/error.ts";
import { plural } from "../../../lib/text.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import {
  alignColumns,
  paint,
  paintRemark,
  print,
  printJson,
  printRemark,
} from "../../format/terminal.ts";
import { callPluginCommand, listMountedPlugins } from "../plugins/plugin.ts";

/** Result of the observer's command `compare`. */
interface ComparedBill {
  readonly oursUsd: string;
  readonly theirsUsd: string;
  readonly differenceUsd: string;
  readonly causes: Readonly<Record<string, string>>;
  readonly groups: readonly {
    readonly day: string;
    readonly model: string | null;
    readonly credential: string | null;
    readonly calls: number;
    readonly oursUsd: string;
    readonly theirsUsd: string;
    readonly differences: readonly {
      readonly cause: string;
      readonly usd: string;
      readonly calls: number;
      readonly attempts: readonly string[];
    }[];
  }[];
  readonly corrections: readonly {
    readonly attempt: string;
    readonly usd: string;
    readonly cause: string;
  }[];
}

const CAUSE_TEXTS: Readonly<Record<string, string>> = {
  estimated: "calls without a complete usage report",
  recovered: "calls that a crash left open",
  unpriced: "calls that had no price",
  pruned: "calls whose rows were replaced by rollups",
  failed: "failed calls that the provider billed",
  price: "calls that the provider billed at another rate",
  outside: "usage that did not pass the gateway",
  unbilled: "usage that the provider did not bill",
  uncounted: "charges without a count",
  other_charge: "taxes, credits, and other charges",
  rounding: "rounding",
};

export const command: CliCommand = {
  usage: "reconcile <provider> [options]",
  description:
    "Compares the ledger with the bill of a provider by model and day, and names the cause of each difference. Needs the observer reconcile in gateway.yaml. With --adjust, it corrects the calls that were estimated, unpriced, or billed at another rate. Exits with 1 if there is a difference that is not rounding.",
  options: {
    day: { placeholder: "date", description: "Day in UTC, such as 2026-11-27" },
    month: { placeholder: "month", description: "Month in UTC, such as 2026-11" },
    adjust: { description: "Correct the ledger. Requires --reason and a running gateway" },
    reason: { placeholder: "text", description: "Reason of the corrections, for the audit log" },
    ...GATEWAY_OPTIONS,
  },
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate reconcile openai --day 2026-11-27",
    "tollgate reconcile openai --month 2026-10 --json",
    "tollgate reconcile openai --month 2026-10 --adjust --reason invoice-4711",
  ],
  async run(given) {
    const period = readPeriod(given);
    const reason = given.getText("reason");
    if (given.has("adjust") !== (reason !== undefined))
      fail("invalid", "--adjust and --reason must be used together.", { code: "usage" });
    const plugin = (await listMountedPlugins(given)).find(({ use }) => use === "reconcile");
    if (!plugin)
      return fail(
        "not_found",
        "gateway.yaml mounts no observer reconcile. Add: observers: [{ use: reconcile, with: { bills: … } }].",
        { code: "no_such_plugin" },
      );
    const provider = given.positionals[0]!;
    const input = { provider, ...period };
    const compared = (await callPluginCommand(
      given,
      `${plugin.id}/compare`,
      input,
    )) as unknown as ComparedBill;
    if (given.json) printJson(compared);
    else printComparison(compared);
    if (reason !== undefined) await adjust(given, compared, reason);
    return Object.keys(compared.causes).some((cause) => cause !== "rounding")
      ? EXIT_CODES.failed
      : EXIT_CODES.ok;
  },
};

/** Returns the first and the last day. */
function readPeriod(given: CliInput): { readonly from: string; readonly to: string } {
  const [day, month] = [given.getText("day"), given.getText("month")];
  if ((day === undefined) === (month === undefined))
    fail("invalid", "Pass either --day or --month. See tollgate reconcile --help.", {
      code: "usage",
    });
  if (day !== undefined) {
    if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day)))
      fail("invalid", `Invalid --day "${day}". It must be a date such as 2026-11-27.`, {
        code: "usage",
      });
    return { from: day, to: day };
  }
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month!) ?? [];
  if (year === undefined)
    return fail("invalid", `Invalid --month "${month}". It must be a month such as 2026-11.`, {
      code: "usage",
    });
  const last = new Date(Date.UTC(Number(year), Number(number), 0));
  return { from: `${month}-01`, to: last.toISOString().slice(0, 10) };
}

function printComparison({
  oursUsd,
  theirsUsd,
  differenceUsd,
  causes,
  groups,
}: ComparedBill): void {
  const different = groups.filter(({ differences }) => differences.length > 0);
  const isDivided = groups.some(({ credential }) => credential !== null);
  if (different.length > 0)
    print(
      alignColumns([
        [
          "day",
          "model",
          ...(isDivided ? ["credential"] : []),
          "calls",
          "ledger",
          "bill",
          "causes",
        ].map((title) => paint("gray", title)),
        ...different.map((group) => [
          group.day,
          group.model ?? "-",
          ...(isDivided ? [group.credential ?? "other keys"] : []),
          group.calls.toLocaleString("en"),
          `$${group.oursUsd}`,
          `$${group.theirsUsd}`,
          group.differences.map(({ cause, usd }) => `${cause} $${usd}`).join(", "),
        ]),
      ]),
    );
  print(
    `${paint("bold", "total")}  ledger $${oursUsd}, bill $${theirsUsd}, difference $${differenceUsd}`,
  );
  const rows = Object.entries(causes).map(([cause, usd]) => [
    cause,
    `$${usd}`,
    paint("gray", CAUSE_TEXTS[cause] ?? ""),
  ]);
  if (rows.length > 0) print(alignColumns(rows, "  "));
}

async function adjust(
  given: CliInput,
  { corrections }: ComparedBill,
  reason: string,
): Promise<void> {
  const stateDir = await findStateDir(given);
  for (const { attempt, usd, cause } of corrections)
    await callControl(stateDir, "ledger.adjust", { attempt, usd, reason: `${reason} (${cause})` });
  printRemark(paintRemark("gray", `${plural(corrections.length, "correction")} written.`));
}
