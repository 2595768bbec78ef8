import type { CliCommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { paintRemark, printRemark, print } from "../../format/terminal.ts";

export const command: CliCommand = gatewayCommand<{ readonly url: string }>("console", {
  print({ url }) {
    print(url);
    printRemark(paintRemark("gray", "The link works once, within a minute."));
  },
});
