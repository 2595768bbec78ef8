import type { ShownAccount } from "../../../admin/commands/account-commands.ts";
import type { CommandName } from "../../../admin/schema/command-specs.ts";
import { type CliCommand, createCommandGroup } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { limitUsageRows, printWarnings, formatLimitUsage } from "../../format/key-output.ts";
import { alignColumns, formatTime, paint, printRemark, print } from "../../format/terminal.ts";

interface AccountResponse {
  readonly account: ShownAccount;
  readonly ancestors?: readonly ShownAccount[];
  readonly accounts?: readonly ShownAccount[];
  readonly keys?: readonly { id: string; name?: string }[];
  readonly warnings?: readonly string[];
}

const accountCommand = (name: CommandName) =>
  gatewayCommand<AccountResponse>(name, { print: printAccount });

export const command: CliCommand = createCommandGroup(
  "accounts",
  "Creates, updates, and closes accounts, which several keys share.",
  {
    create: accountCommand("accounts.create"),
    list: gatewayCommand("accounts.list", { print: printAccounts }),
    show: accountCommand("accounts.show"),
    update: accountCommand("accounts.update"),
    close: accountCommand("accounts.close"),
  },
);

function printAccount({
  account,
  ancestors = [],
  accounts = [],
  keys = [],
  warnings,
}: AccountResponse) {
  printWarnings(warnings);
  print(formatAccount(account, ancestors, accounts, keys));
}

function printAccounts({ accounts }: { readonly accounts: readonly ShownAccount[] }): void {
  if (accounts.length === 0)
    return printRemark("There are no accounts. Create one with: tollgate accounts create");
  print(
    alignColumns([
      ["account", "name", "state", "keys", "defined in", "remaining"].map((title) =>
        paint("gray", title),
      ),
      ...accounts.map((each) => [
        `${"  ".repeat(each.path.split("/").length - 1)}${each.id}`,
        each.name ?? "",
        formatState(each),
        String(each.keyCount),
        each.definedAt ?? "the store",
        (each.limitUsage ?? []).map(formatLimitUsage).join(", "),
      ]),
    ]),
  );
}

const formatState = ({ state }: ShownAccount): string =>
  paint(state === "valid" ? "green" : "red", state);

function formatAccount(
  account: ShownAccount,
  above: readonly ShownAccount[],
  within: readonly ShownAccount[],
  keys: NonNullable<AccountResponse["keys"]>,
): string {
  const rows: [string, string | undefined][] = [
    ["id", account.id],
    ["name", account.name],
    ["path", account.path],
    ["state", formatState(account)],
    ["defined in", account.definedAt],
    ["created", account.created === undefined ? undefined : formatTime(account.created)],
    ["version", account.definedAt === undefined ? String(account.version) : undefined],
    ["models", (account.models ?? ["all"]).join(", ")],
    ["frontends", (account.frontends ?? ["everywhere"]).join(", ")],
    ["tools", account.tools?.join(", ")],
    ["privacy", account.privacy],
    ["limits", account.limits?.join(", ")],
    ...limitUsageRows([account, ...above].flatMap(({ limitUsage }) => limitUsage ?? [])),
    ["defaults for new keys", account.defaults?.limits.join(", ")],
    ["limit visibility", account.discloseLimits === "hidden" ? "hidden from clients" : undefined],
    [
      "labels",
      Object.entries(account.labels ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
    ["accounts", within.map(({ id }) => id).join(", ")],
    ["keys", keys.map(({ id, name }) => name ?? id).join(", ")],
  ];
  return alignColumns(
    rows.flatMap(([name, value]) => (value ? [[paint("gray", name), value]] : [])),
  );
}
