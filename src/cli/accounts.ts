import type { ShownAccount } from "../gateway/control/account-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import type { JsonObject } from "../model/values.ts";
import { type CliCommand, type CliInput, EXIT, group, type Part, PLACE } from "./command.ts";
import { grantsOf, GRANTS, OF_ACCOUNT, VERSION } from "./grants.ts";
import { countRows } from "./key-words.ts";
import { countText } from "./limit.ts";
import { storeDoor } from "./store.ts";
import { columns, moment, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const WHERE = "In the running gateway, or in its store while none runs.";

type Verb = "list" | "show" | "create" | "update" | "end";

interface AccountAnswer {
  readonly accounts?: readonly ShownAccount[];
  readonly account?: ShownAccount;
  readonly above?: readonly ShownAccount[];
  readonly keys?: readonly { id: string; name?: string }[];
  readonly warnings?: readonly string[];
}

const part = (
  verb: Verb,
  of: Pick<Part, "about" | "options" | "examples">,
  input: (given: CliInput) => JsonObject = () => ({}),
): Part => {
  const takes = verb === "list" ? 0 : 1;
  return {
    ...of,
    usage: `accounts ${verb}${takes ? " <id>" : ""} [options]`,
    summary: COMMANDS[`accounts.${verb}`].summary,
    about: `${of.about} ${WHERE}`,
    options: { ...of.options, ...PLACE },
    words: { least: takes, most: takes },
    async run(given) {
      const asked = { ...(takes && { id: given.words[0]! }), ...input(given) };
      await using door = await storeDoor(given);
      const answer = (await door.ask(`accounts.${verb}`, asked)) as unknown as AccountAnswer;
      if (given.json) sayJson(answer);
      else tell(verb, answer);
      return EXIT.fine;
    },
  };
};

const parts: Readonly<Record<Verb, Part>> = {
  create: part(
    "create",
    {
      about: "Makes an account: what several keys share. It may stand in another one.",
      options: { ...GRANTS, ...OF_ACCOUNT },
      examples: [
        "tollgate accounts create acme --limit usd=1000/month --privacy required",
        "tollgate accounts create web --parent acme --limit usd=300/month --default-limit usd=20/month",
      ],
    },
    grantsOf,
  ),
  list: part(
    "list",
    {
      about: "Lists accounts as a tree, with what is left of their limits.",
      options: { ended: { about: "ended ones too" } },
      examples: ["tollgate accounts list"],
    },
    (given) => ({ ended: given.has("ended") }),
  ),
  show: part("show", {
    about: "Shows an account, what it stands in and what stands in it.",
    options: {},
    examples: ["tollgate accounts show web"],
  }),
  update: part(
    "update",
    {
      about:
        'Changes what an account says, or where it stands, for the next request of each of its keys. What is not said stays, and "none" takes away.',
      options: { ...GRANTS, ...OF_ACCOUNT, ...VERSION },
      examples: [
        "tollgate accounts update web --limit usd=500/month",
        "tollgate accounts update web --parent none",
      ],
    },
    grantsOf,
  ),
  end: part(
    "end",
    {
      about: "Ends an account: its keys, and those of all accounts in it, are refused.",
      options: VERSION,
      examples: ["tollgate accounts end web"],
    },
    grantsOf,
  ),
};

export const command: CliCommand = group(
  "accounts",
  "Makes, changes and ends what several keys share.",
  parts,
);

function tell(
  verb: Verb,
  { accounts = [], account, above = [], keys = [], warnings = [] }: AccountAnswer,
) {
  for (const warning of warnings) remark(`${paintRemark("yellow", "warning")}  ${warning}`);
  if (verb !== "list") return say(inFull(account!, above, accounts, keys));
  if (accounts.length === 0)
    return remark("There are no accounts. tollgate accounts create makes one.");
  return say(
    columns([
      ["account", "name", "state", "keys", "stands in", "left"].map((title) =>
        paint("gray", title),
      ),
      ...accounts.map((each) => [
        `${"  ".repeat(each.path.split("/").length - 1)}${each.id}`,
        each.name ?? "",
        stateOf(each),
        String(each.keys),
        each.from ?? "the store",
        (each.counted ?? []).map(countText).join(", "),
      ]),
    ]),
  );
}

const stateOf = ({ state }: ShownAccount): string =>
  paint(state === "valid" ? "green" : "red", state);

function inFull(
  account: ShownAccount,
  above: readonly ShownAccount[],
  within: readonly ShownAccount[],
  keys: NonNullable<AccountAnswer["keys"]>,
): string {
  const rows: [string, string | undefined][] = [
    ["id", account.id],
    ["name", account.name],
    ["path", account.path],
    ["state", stateOf(account)],
    ["stands in", account.from],
    ["made", account.created === undefined ? undefined : moment(account.created)],
    ["version", account.from === undefined ? String(account.version) : undefined],
    ["models", (account.models ?? ["everything"]).join(", ")],
    ["frontends", (account.frontends ?? ["everywhere"]).join(", ")],
    ["privacy", account.privacy],
    ["limits", account.limits?.join(", ")],
    ...countRows([account, ...above].flatMap(({ counted }) => counted ?? [])),
    ["new keys get", account.defaults?.limits.join(", ")],
    ["tells", account.tells === "nothing" ? "clients nothing of its limits" : undefined],
    [
      "labels",
      Object.entries(account.labels ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
    ["accounts", within.map(({ id }) => id).join(", ")],
    ["keys", keys.map(({ id, name }) => name ?? id).join(", ")],
  ];
  return columns(rows.flatMap(([name, value]) => (value ? [[paint("gray", name), value]] : [])));
}
