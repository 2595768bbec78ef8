// Whose command it is: that is known at the door, and everything behind the door goes by it.
import { ROLES } from "../../config/admin.ts";
import { fail } from "../../model/error.ts";
import type { Role } from "../../plugin/role.ts";

/** Where a command came in. `files`: the command line, while no gateway runs. */
export type CommandDoor = "socket" | "files" | "token" | "session";

export interface Giver {
  /** As the audit log names it: "shell", "admin:anna". */
  readonly name: string;
  readonly role: Role;
  /** It sees and changes what is of this account and below it, and nothing else. Undefined: all of it. */
  readonly within?: string | undefined;
  readonly door: CommandDoor;
  readonly address?: string | undefined;
}

/** A user who may open the state folder may do all. */
export const SHELL: Giver = { name: "shell", role: "owner", door: "socket" };

/** While no gateway runs. */
export const ON_FILES: Giver = { ...SHELL, door: "files" };

/** Each role may what those before it may. */
const rank = (role: Role): number => ROLES.indexOf(role);

export const isRole = (role: Role, least: Role): boolean => rank(role) >= rank(least);

export function mustBeRole({ name, role }: Giver, least: Role): void {
  if (!isRole(role, least))
    fail("forbidden", `This needs the role ${least}, and ${name} is ${role}.`, {
      code: "role_too_low",
    });
}
