// The principal of an admin command. The principal is determined where the command arrives, and all
// later checks use it.
import { ROLES } from "../../config/sections/admin-config.ts";
import { fail } from "../../model/error.ts";
import type { Role } from "../../plugin/role.ts";

/** How a command arrived. `offline`: from the command line while no gateway runs. */
export type CommandChannel = "socket" | "offline" | "token" | "session";

/** The holder of an admin credential. */
export interface Principal {
  /**
   * Display name, as in the audit log: "shell", "admin:anna". The name is not unique: use
   * `principalId` as a key.
   */
  readonly name: string;
  readonly role: Role;
  /**
   * Account that the principal is limited to, with its nested accounts. If unset, the principal can
   * see and change everything.
   */
  readonly account?: string | undefined;
  /**
   * Issuer and subject of the credential: "shell", "token:<id>", "file:<name>#<digest>",
   * "oidc:<issuer> <sub>". It is unique to one credential and is never reused.
   */
  readonly credentialId: string;
  /** Group that grants the role. Set for users of the identity provider. */
  readonly group?: string | undefined;
  /** Expiry of the credential, in Unix milliseconds. */
  readonly expiresAt?: number | undefined;
}

/**
 * Returns the key under which data of a principal is cached or counted. Two principals are the same
 * only if issuer, subject, role, and account are the same. Roles and encoded accounts contain no
 * colon, so the key is unambiguous.
 */
export const principalId = ({ credentialId, role, account }: Principal): string =>
  `admin:${role}:${account === undefined ? "" : `=${encodeURIComponent(account)}`}:${credentialId}`;

export interface CommandPrincipal extends Principal {
  readonly channel: CommandChannel;
  readonly address?: string | undefined;
}

/** Principal of the control socket. A user who can open the state directory has all rights. */
export const SHELL_PRINCIPAL: CommandPrincipal = {
  name: "shell",
  role: "owner",
  credentialId: "shell",
  channel: "socket",
};

/** Principal of commands that run while no gateway runs. */
export const OFFLINE_PRINCIPAL: CommandPrincipal = { ...SHELL_PRINCIPAL, channel: "offline" };

/** Returns the rank of a role. Each role includes the rights of the roles before it. */
const rankOf = (role: Role): number => ROLES.indexOf(role);

export const hasRole = (role: Role, least: Role): boolean => rankOf(role) >= rankOf(least);

export function assertRole({ name, role }: CommandPrincipal, least: Role): void {
  if (!hasRole(role, least))
    fail("forbidden", `This requires the role ${least}, and ${name} has the role ${role}.`, {
      code: "role_too_low",
    });
}

// Base path of the admin API.
export const API_PATH = "/admin/v1";
/** Base path of the login with the operators' identity provider. */
export const OIDC_PATH = `${API_PATH}/oidc`;
export const OPENAPI_PATH = "/admin/openapi.json";

/** Whether a path belongs to the admin API. Plugins cannot serve such a path. */
export const isApiPath = (path: string): boolean =>
  path === API_PATH || path.startsWith(`${API_PATH}/`) || path === OPENAPI_PATH;
