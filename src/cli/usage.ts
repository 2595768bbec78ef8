import type { Dimension, Sum, Sums } from "../gateway/control/ledger-commands.ts";
import { plural } from "../lib/text.ts";
import { inputTokens, outputTokens } from "../model/usage.ts";
import { formatUsd, nanoToDecimal } from "../money/format.ts";
import { type CliCommand, CONFIG, EXIT, STATE } from "./command.ts";
import { WHICH, whichOf } from "./since.ts";
import { storeDoor } from "./store.ts";
import { columns, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "usage [options]",
  about:
    "Sums up what was used and what it cost, by key, account, model, provider, day or label. What has no known price is counted\n" +
    "and named, never taken for nothing; so is what had to be estimated.",
  options: {
    ...CONFIG,
    ...STATE,
    by: {
      value: "what",
      about: "key (by default), account, model, provider, day, label; or several, as in day,model",
      many: true,
    },
    ...WHICH,
  },
  examples: ["tollgate usage --since 30d", "tollgate usage --by day,model --key laptop --json"],
  async run(given) {
    const by = given.texts("by").flatMap((text) => text.split(",").filter(Boolean)) as Dimension[];
    if (by.length === 0) by.push("key");
    await using door = await storeDoor(given);
    const { rows, total } = (await door.ask("ledger.totals", {
      ...whichOf(given),
      by,
    })) as unknown as Sums;
    if (given.json) sayJson({ by, rows: rows.map(inJson), total: inJson(total) });
    else if (rows.length === 0) remark("Nothing was used.");
    else {
      say(
        columns([
          [...by, "calls", "in", "out", "cost", ""].map((title) => paint("gray", title)),
          ...rows.map((row) => [...by.map((each) => row.by[each] || "-"), ...cells(row)]),
          ...(rows.length > 1
            ? [[...by.map((_, i) => (i === 0 ? "all" : "")), ...cells(total)]]
            : []),
        ]),
      );
      if (total.unpriced > 0)
        remark(
          paintRemark(
            "yellow",
            `${plural(total.unpriced, "call")} without a known price, not in the cost. tollgate models explain <model> says more.`,
          ),
        );
    }
    return EXIT.fine;
  },
};

const cells = (sum: Sum): string[] => [
  count(sum.calls),
  count(inputTokens(sum.usage)),
  count(outputTokens(sum.usage)),
  formatUsd(BigInt(sum.costNano)),
  [
    sum.unpriced > 0 && paint("yellow", `${count(sum.unpriced)} unpriced`),
    sum.estimated > 0 && paint("yellow", `${count(sum.estimated)} estimated`),
  ]
    .filter(Boolean)
    .join(", "),
];

const count = (n: number) => n.toLocaleString("en");

const inJson = ({ by, calls, usage, costNano, unpriced, estimated }: Sum) => ({
  ...by,
  calls,
  usage,
  usd: nanoToDecimal(BigInt(costNano)),
  unpriced,
  estimated,
});
