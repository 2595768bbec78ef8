import { ROLES } from "../config/admin.ts";
import type { ShownAdmin } from "../gateway/control/admin-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, type CliInput, EXIT, group, type Part, PLACE } from "./command.ts";
import { expiryOf } from "./expiry.ts";
import { storeDoor } from "./store.ts";
import { clean, columns, moment, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const WHERE = "In the running gateway, or in its store while none runs.";

interface AdminAnswer {
  readonly secret?: string;
  readonly admin?: ShownAdmin;
  readonly admins?: readonly ShownAdmin[];
  /** Of gateway.yaml. */
  readonly tokens?: readonly { readonly name: string; readonly role: string }[];
  readonly oidc?: {
    readonly roles: readonly {
      readonly group: string;
      readonly role: string;
      readonly account?: string;
    }[];
  } | null;
}

const part = (
  does: "create" | "list" | "end",
  of: Omit<Part, "run" | "summary" | "words">,
  input: (given: CliInput) => JsonObject,
): Part => ({
  ...of,
  summary: COMMANDS[`admins.${does}`].summary,
  words: does === "list" ? { least: 0, most: 0 } : { least: 1, most: 1 },
  async run(given) {
    const asked = input(given);
    await using door = await storeDoor(given);
    const answer: Json = await door.ask(`admins.${does}`, asked);
    if (given.json) sayJson(answer);
    else tell(answer as unknown as AdminAnswer);
    return EXIT.fine;
  },
});

const parts: Readonly<Record<string, Part>> = {
  create: part(
    "create",
    {
      usage: "admins create <name> --role <role> [options]",
      about: `Makes a token for the admin listener and prints it: once, for it is kept nowhere. It opens no model. ${WHERE}`,
      options: {
        role: { value: "role", about: `what its holder may do: ${ROLES.join(", ")}` },
        account: { value: "name", about: "hold it to this account and those below it" },
        expires: { value: "when", about: "after 30d, or on 2027-01-31" },
        ...PLACE,
      },
      examples: [
        "tollgate admins create anna --role owner",
        "tollgate admins create research-lead --role operator --account research --expires 90d",
      ],
    },
    (given) => ({
      name: given.words[0],
      role:
        given.text("role") ??
        fail("invalid", `Say --role: ${ROLES.join(", ")}.`, { code: "usage" }),
      account: given.text("account"),
      expires: given.has("expires") ? expiryOf(given.text("expires")!) : undefined,
    }),
  ),
  list: part(
    "list",
    {
      usage: "admins list [options]",
      about: `Lists admin tokens with their roles, ended ones too: those of the store, those of gateway.yaml, and the roles of the identity provider's groups. ${WHERE}`,
      options: PLACE,
      examples: ["tollgate admins list"],
    },
    () => ({}),
  ),
  end: part(
    "end",
    {
      usage: "admins end <id> [options]",
      about: `Ends an admin token at once, and the sessions that were begun with it. ${WHERE}`,
      options: PLACE,
      examples: ["tollgate admins end anna"],
    },
    (given) => ({ id: given.words[0] }),
  ),
};

export const command: CliCommand = group(
  "admins",
  "Makes and ends the tokens of those who may give commands.",
  parts,
);

function tell({ secret, admin, admins = admin ? [admin] : [], ...file }: AdminAnswer): void {
  if (secret !== undefined) {
    say(secret);
    remark(paintRemark("gray", `${admin!.id}: shown this once. Keep it where it is safe.`));
    return;
  }
  const fixed = fixedRows(file);
  if (admins.length + fixed.length === 0)
    return remark("There is none. tollgate admins create <name> makes one.");
  say(
    columns([
      ...admins.map(({ id, name, role, account, created, state }) => [
        id,
        paint("bold", clean(name ?? "")),
        role,
        account ?? "",
        state,
        paint("gray", moment(created)),
      ]),
      ...fixed,
    ]),
  );
}

/** Admins that gateway.yaml names. */
const fixedRows = ({ tokens = [], oidc }: Pick<AdminAnswer, "tokens" | "oidc">): string[][] => [
  ...tokens.map(({ name, role }) => [
    "-",
    paint("bold", clean(name)),
    role,
    "",
    "gateway.yaml",
    "",
  ]),
  ...(oidc?.roles ?? []).map(({ group, role, account = "" }) => [
    "-",
    paint("bold", `group ${clean(group)}`),
    role,
    account,
    "gateway.yaml",
    "",
  ]),
];
