import { ROLES } from "../../../config/sections/admin-config.ts";
import type { ShownAdmin } from "../../../admin/commands/admin-commands.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, createCommandGroup } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import {
  sanitize,
  alignColumns,
  formatTime,
  paint,
  paintRemark,
  printRemark,
  print,
} from "../../format/terminal.ts";

interface AdminList {
  readonly admins: readonly ShownAdmin[];
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

export const command: CliCommand = createCommandGroup(
  "admins",
  "Creates, lists, and revokes admin tokens.",
  {
    create: gatewayCommand<{ readonly secret: string; readonly admin: ShownAdmin }>(
      "admins.create",
      {
        toInput: (input) =>
          input["role"] === undefined
            ? fail("invalid", `Missing role. Pass --role with one of ${ROLES.join(", ")}.`, {
                code: "usage",
              })
            : input,
        print({ secret, admin }) {
          print(secret);
          printRemark(
            paintRemark(
              "gray",
              `${admin.id}: this token is shown only once. Store it in a safe place.`,
            ),
          );
        },
      },
    ),
    list: gatewayCommand("admins.list", { print: printAdmins }),
    revoke: gatewayCommand("admins.revoke", { print: printAdmins }),
  },
);

function printAdmins({ admins, ...file }: AdminList): void {
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
}: Pick<AdminList, "tokens" | "oidc">): string[][] => [
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
