import { plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import type { CliCommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { paintRemark, printRemark, print } from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<{
  readonly texts: number;
  readonly hashes: readonly string[];
}>("erase", {
  toInput: (input) =>
    ["label", "key", "account"].filter((name) => input[name] !== undefined).length !== 1
      ? fail(
          "invalid",
          "Pass one of --label name=value, --key <id>, and --account <id>. See tollgate erase --help.",
          {
            code: "usage",
          },
        )
      : input,
  print: ({ texts }) =>
    texts === 0
      ? printRemark(paintRemark("yellow", "No matching data was found."))
      : print(`${plural(texts, "text")} erased`),
});
