import { ROLES } from "../../../config/sections/admin-config.ts";
import type { ShownAdmin } from "../../../admin/commands/admin-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { fail } from "../../../model/error.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { parseExpiry } from "../../format/expiry.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import {
  sanitize,
  alignColumns,
  formatTime,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

const WHERE_TEXT = "Uses the running gateway, or its store if no gateway is running.";

interface AdminResponse {
  readonly secret?: string;
  readonly admin?: ShownAdmin;
  readonly admins?: readonly ShownAdmin[];
  /** The `admin` section of gateway.yaml. */
  readonly tokens?: readonly { readonly name: string; readonly role: string }[];
  readonly oidc?: {
    readonly roles: readonly {
      readonly group: string;
      readonly role: string;
      readonly account?: string;
    }[];
  } | null;
}

const createSubcommand = (
  does: "create" | "list" | "revoke",
  of: Omit<Subcommand, "run" | "summary" | "positionals">,
  input: (given: CliInput) => JsonObject,
): Subcommand => ({
  ...of,
  summary: COMMAND_SPECS[`admins.${does}`].summary,
  positionals: does === "list" ? { least: 0, most: 0 } : { least: 1, most: 1 },
  async run(given) {
    const asked = input(given);
    await using door = await openStoreAccess(given);
    const answer: Json = await door.run(`admins.${does}`, asked);
    if (given.json) printJson(answer);
    else printAdmins(answer as unknown as AdminResponse);
    return EXIT_CODES.ok;
  },
});

const subcommands: Readonly<Record<string, Subcommand>> = {
  create: createSubcommand(
    "create",
    {
      usage: "admins create <name> --role <role> [options]",
      description: `Creates a token for the admin listener and prints it once. The token is not stored and gives no access to models. ${WHERE_TEXT}`,
      options: {
        role: { placeholder: "role", description: `Role of the token: ${ROLES.join(", ")}` },
        account: {
          placeholder: "name",
          description: "Account that the token is restricted to, with the accounts nested under it",
        },
        expires: {
          placeholder: "when",
          description: "Expiry, as a duration (30d) or a date (2027-01-31)",
        },
        ...GATEWAY_OPTIONS,
      },
      examples: [
        "tollgate admins create anna --role owner",
        "tollgate admins create research-lead --role operator --account research --expires 90d",
      ],
    },
    (given) => ({
      name: given.positionals[0],
      role:
        given.getText("role") ??
        fail("invalid", `Missing role. Pass --role with one of ${ROLES.join(", ")}.`, {
          code: "usage",
        }),
      account: given.getText("account"),
      expires: given.has("expires") ? parseExpiry(given.getText("expires")!) : undefined,
    }),
  ),
  list: createSubcommand(
    "list",
    {
      usage: "admins list [options]",
      description: `Lists admin tokens with their roles, including revoked tokens. The list covers tokens in the store, tokens in gateway.yaml, and the roles of the identity provider's groups. ${WHERE_TEXT}`,
      options: GATEWAY_OPTIONS,
      examples: ["tollgate admins list"],
    },
    () => ({}),
  ),
  revoke: createSubcommand(
    "revoke",
    {
      usage: "admins revoke <id> [options]",
      description: `Revokes an admin token and its sessions. ${WHERE_TEXT}`,
      options: GATEWAY_OPTIONS,
      examples: ["tollgate admins revoke anna"],
    },
    (given) => ({ id: given.positionals[0] }),
  ),
};

export const command: CliCommand = createCommandGroup(
  "admins",
  "Creates, lists, and revokes admin tokens.",
  subcommands,
);

function printAdmins({
  secret,
  admin,
  admins = admin ? [admin] : [],
  ...file
}: AdminResponse): void {
  if (secret !== undefined) {
    print(secret);
    printRemark(
      paintRemark("gray", `${admin!.id}: this token is shown only once. Store it in a safe place.`),
    );
    return;
  }
  const fixed = configuredAdminRows(file);
  if (admins.length + fixed.length === 0)
    return printRemark("There are no admins. Create one with: tollgate admins create <name>");
  print(
    alignColumns([
      ...admins.map(({ id, name, role, account, created, state }) => [
        id,
        paint("bold", sanitize(name ?? "")),
        role,
        account ?? "",
        state,
        paint("gray", formatTime(created)),
      ]),
      ...fixed,
    ]),
  );
}

/** Returns a row for each admin that gateway.yaml configures. */
const configuredAdminRows = ({
  tokens = [],
  oidc,
}: Pick<AdminResponse, "tokens" | "oidc">): string[][] => [
  ...tokens.map(({ name, role }) => [
    "-",
    paint("bold", sanitize(name)),
    role,
    "",
    "gateway.yaml",
    "",
  ]),
  ...(oidc?.roles ?? []).map(({ group, role, account = "" }) => [
    "-",
    paint("bold", `group ${sanitize(group)}`),
    role,
    account,
    "gateway.yaml",
    "",
  ]),
];
