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
    (input["label"] === undefined) === (input["key"] === undefined)
      ? fail(
          "invalid",
          "Pass either --label name=value or --key <id>. See tollgate erase --help.",
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
