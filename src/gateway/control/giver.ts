// Whose command it is: that is known at the door, and everything behind the door goes by it.
import { ROLES } from "../../config/admin.ts";
import { fail } from "../../model/error.ts";
import type { Role } from "../../plugin/role.ts";

/** Where a command came in. `files`: the command line, while no gateway runs. */
export type CommandDoor = "socket" | "files" | "token" | "session";

/** The holder of an admin credential. */
export interface Principal {
  /** Display name, as in the audit log: "shell", "admin:anna". Not unique: use `principalId` to key anything. */
  readonly name: string;
  readonly role: Role;
  /** It sees and changes what is of this account and below it, and nothing else. Undefined: all of it. */
  readonly within?: string | undefined;
  /**
   * Issuer and subject of the credential: "shell", "token:<id>", "file:<name>#<digest>", "oidc:<issuer> <sub>". Unique to one
   * credential, and not reused by a later one.
   */
  readonly by: string;
  /** For people from the identity provider: the group that grants the role. */
  readonly group?: string | undefined;
  /** When the credential expires, in Unix milliseconds. */
  readonly until?: number | undefined;
}

/**
 * Identifies a principal: two are the same only if issuer, subject, role, and account are the same. Everything that is cached or
 * counted for a principal is keyed by this. Roles and encoded accounts contain no colon, so the parts cannot run into one another.
 */
export const principalId = ({ by, role, within }: Principal): string =>
  `admin:${role}:${within === undefined ? "" : `=${encodeURIComponent(within)}`}:${by}`;

export interface Giver extends Principal {
  readonly door: CommandDoor;
  readonly address?: string | undefined;
}

/** A user who may open the state folder may do all. */
export const SHELL: Giver = { name: "shell", role: "owner", by: "shell", door: "socket" };

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
