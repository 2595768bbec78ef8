import type { ScopeDetails, ShownScope } from "../../../admin/commands/scope-commands.ts";
import { formatDuration } from "../../../lib/time/units.ts";
import { type CliCommand, createCommandGroup } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { limitUsageRows } from "../../format/key-output.ts";
import { alignColumns, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = createCommandGroup(
  "scopes",
  "Lists scopes, and shows the usage of their members. The default command is list.",
  {
    list: gatewayCommand<{ readonly scopes: readonly ShownScope[] }>("scopes.list", {
      print: ({ scopes }) => print(formatScopes(scopes)),
    }),
    show: gatewayCommand<ScopeDetails>("scopes.show", {
      print: (details) => print(formatDetails(details)),
    }),
  },
  "list",
);

const TITLES = ["scope", "value", "within", "limits", "overflow", "members", "idle"];

function formatScopes(scopes: readonly ShownScope[]): string {
  if (scopes.length === 0) return "No scopes. Add them under scopes in gateway.yaml.";
  return alignColumns([TITLES.map((title) => paint("gray", title)), ...scopes.map(rowOf)]);
}

const rowOf = (scope: ShownScope): string[] => [
  scope.name,
  scope.from.join(", "),
  scope.within,
  scope.limits.join(", "),
  scope.downgradeModel === undefined ? scope.overflow : `downgrade to ${scope.downgradeModel}`,
  scope.from.length > 0 ? String(scope.maxMembers) : "1",
  scope.from.length > 0 ? formatDuration(scope.idleMs) : "",
];

function formatDetails({ scope, limitUsage, members }: ScopeDetails): string {
  if (!members) return alignColumns(limitUsageRows(limitUsage));
  if (members.length === 0) return `No usage of ${scope.name} in the last 24 hours.`;
  return alignColumns([
    [scope.name, "calls", "cost (USD)"].map((title) => paint("gray", title)),
    ...members.map(({ value, calls, costUsd }) => [value, String(calls), costUsd]),
  ]);
}
