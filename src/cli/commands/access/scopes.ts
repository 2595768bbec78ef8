import type {
  ScopeDetails,
  ShownMember,
  ShownScope,
} from "../../../admin/commands/scope-commands.ts";
import { plural } from "../../../lib/text.ts";
import { formatDuration } from "../../../lib/time/units.ts";
import { type CliCommand, createCommandGroup } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { formatLimitUsage, limitUsageRows } from "../../format/key-output.ts";
import { alignColumns, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = createCommandGroup(
  "scopes",
  "Lists scopes, shows the usage of their members, and resets, raises, and erases members. The default command is list.",
  {
    list: gatewayCommand<{ readonly scopes: readonly ShownScope[] }>("scopes.list", {
      print: ({ scopes }) => print(formatScopes(scopes)),
    }),
    show: gatewayCommand<ScopeDetails>("scopes.show", {
      print: (details) => print(formatDetails(details)),
    }),
    reset: gatewayCommand<ScopeDetails>("scopes.reset", {
      print: (details) => print(formatDetails(details)),
    }),
    raise: gatewayCommand<ScopeDetails>("scopes.raise", {
      print: (details) => print(formatDetails(details)),
    }),
    erase: gatewayCommand<{ readonly texts: number }>("scopes.erase", {
      print: ({ texts }) => print(`${plural(texts, "text")} erased`),
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

function formatDetails({ scope, limitUsage, members, memberCount = 0 }: ScopeDetails): string {
  if (!members) return alignColumns(limitUsageRows(limitUsage));
  if (members.length === 0) return `No usage of ${scope.name} in the last 24 hours.`;
  const titles = [scope.name, "within", "calls", "cost (USD)", "limits"];
  const more = memberCount - members.length;
  return (
    alignColumns([titles.map((title) => paint("gray", title)), ...members.map(memberRow)]) +
    (more > 0 ? `\n${more} more members with a lower cost. Use --search to find them.` : "")
  );
}

const memberRow = ({ value, key, keyName, account, calls, costUsd, limitUsage }: ShownMember) => [
  value,
  keyName ?? key ?? account ?? "",
  String(calls),
  costUsd,
  (limitUsage ?? []).map(formatLimitUsage).join("; "),
];
