import type { ShownAccount } from "../../../admin/commands/account-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import type { JsonObject } from "../../../model/values.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import {
  parseGrants,
  GRANT_OPTIONS,
  ACCOUNT_OPTIONS,
  VERSION_OPTION,
} from "../../support/grant-options.ts";
import { limitUsageRows } from "../../format/key-output.ts";
import { formatLimitUsage } from "../../format/limit-output.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import {
  alignColumns,
  formatTime,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

const WHERE_TEXT = "Uses the running gateway, or its store if no gateway is running.";

type Verb = "list" | "show" | "create" | "update" | "close";

interface AccountResponse {
  readonly accounts?: readonly ShownAccount[];
  readonly account?: ShownAccount;
  readonly ancestors?: readonly ShownAccount[];
  readonly keys?: readonly { id: string; name?: string }[];
  readonly warnings?: readonly string[];
}

const createSubcommand = (
  verb: Verb,
  of: Pick<Subcommand, "description" | "options" | "examples">,
  input: (given: CliInput) => JsonObject = () => ({}),
): Subcommand => {
  const takes = verb === "list" ? 0 : 1;
  return {
    ...of,
    usage: `accounts ${verb}${takes ? " <id>" : ""} [options]`,
    summary: COMMAND_SPECS[`accounts.${verb}`].summary,
    description: `${of.description} ${WHERE_TEXT}`,
    options: { ...of.options, ...GATEWAY_OPTIONS },
    positionals: { least: takes, most: takes },
    async run(given) {
      const asked = { ...(takes && { id: given.positionals[0]! }), ...input(given) };
      await using door = await openStoreAccess(given);
      const answer = (await door.run(`accounts.${verb}`, asked)) as unknown as AccountResponse;
      if (given.json) printJson(answer);
      else printAccounts(verb, answer);
      return EXIT_CODES.ok;
    },
  };
};

const subcommands: Readonly<Record<Verb, Subcommand>> = {
  create: createSubcommand(
    "create",
    {
      description: "Creates an account, which several keys share. Accounts can be nested.",
      options: { ...GRANT_OPTIONS, ...ACCOUNT_OPTIONS },
      examples: [
        "tollgate accounts create acme --limit usd=1000/month --privacy required",
        "tollgate accounts create web --parent acme --limit usd=300/month --default-limit usd=20/month",
      ],
    },
    parseGrants,
  ),
  list: createSubcommand(
    "list",
    {
      description: "Lists accounts as a tree, with the remaining amount of each limit.",
      options: { closed: { description: "Include closed accounts" } },
      examples: ["tollgate accounts list"],
    },
    (given) => ({ closed: given.has("closed") }),
  ),
  show: createSubcommand("show", {
    description: "Shows an account with its parent and nested accounts.",
    options: {},
    examples: ["tollgate accounts show web"],
  }),
  update: createSubcommand(
    "update",
    {
      description:
        "Updates or moves an account. Changes apply from the next request of each of its " +
        'keys. Options that you omit are unchanged. Pass "none" to clear a value.',
      options: { ...GRANT_OPTIONS, ...ACCOUNT_OPTIONS, ...VERSION_OPTION },
      examples: [
        "tollgate accounts update web --limit usd=500/month",
        "tollgate accounts update web --parent none",
      ],
    },
    parseGrants,
  ),
  close: createSubcommand(
    "close",
    {
      description:
        "Closes an account. Requests with its keys, and with keys of accounts nested " +
        "under it, are rejected.",
      options: VERSION_OPTION,
      examples: ["tollgate accounts close web"],
    },
    parseGrants,
  ),
};

export const command: CliCommand = createCommandGroup(
  "accounts",
  "Creates, updates, and closes accounts, which several keys share.",
  subcommands,
);

function printAccounts(
  verb: Verb,
  { accounts = [], account, ancestors = [], keys = [], warnings = [] }: AccountResponse,
) {
  for (const warning of warnings) printRemark(`${paintRemark("yellow", "warning")}  ${warning}`);
  if (verb !== "list") return print(formatAccount(account!, ancestors, accounts, keys));
  if (accounts.length === 0)
    return printRemark("There are no accounts. Create one with: tollgate accounts create");
  return print(
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
    ["models", (account.models ?? ["everything"]).join(", ")],
    ["frontends", (account.frontends ?? ["everywhere"]).join(", ")],
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
