// Commands for admin tokens and for the sessions that were started with them. No result contains a
// digest. The secret of a new token is shown only once.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { AdminConfig, OidcConfig } from "../../config/gateway-config.ts";
import { mintKey } from "../../lib/api-key.ts";
import { fail } from "../../model/error.ts";
import type { Role } from "../../plugin/role.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { Store } from "../../plugin/store/store.ts";
import { tokenCredentialId } from "../../runtime/access/admin-principals.ts";
import type { AuditedCommand } from "../../plugin/store/audit.ts";
import type { Sessions } from "../../runtime/access/sessions.ts";
import type { InputOf } from "../schema/command-specs.ts";
import type { AccountTree } from "../access/account-tree.ts";
import { assertAccountExists } from "../access/grants.ts";
import type { AccessCounter } from "../dispatch/command-dispatcher.ts";
import { SHELL_PRINCIPAL } from "../../runtime/access/principal.ts";
import { withInputChecks } from "../dispatch/command-input.ts";

export interface AdminRepository {
  list(): Promise<readonly KeyRecord[]>;
  /** Writes a record. Resolves when it is durable. */
  write(record: KeyRecord): Promise<unknown>;
  /** Returns the `admin:` section of gateway.yaml. */
  fileConfig(): Pick<AdminConfig, "tokens" | "oidc"> | undefined;
  /** Reads the account tree, because an admin can be limited only to an existing account. */
  readTree(): Promise<AccountTree>;
  /** Returns the sessions of the running gateway. */
  sessions?(): Pick<Sessions, "end">;
}

/** An admin token as commands return it. Times are in Unix milliseconds. */
export interface ShownAdmin {
  readonly id: string;
  readonly name: string | undefined;
  readonly role: Role;
  readonly account: string | undefined;
  readonly created: number;
  readonly expires: number | undefined;
  readonly state: "valid" | "expired" | "revoked";
}

export function createAdminCommands(repository: AdminRepository, now: () => number = wallClock) {
  const over = (at: number | undefined) => at !== undefined && at <= now();
  const shown = (of: KeyRecord): ShownAdmin => {
    const { id, name, admin, account, created, expires, revoked } = of;
    const state = over(revoked) ? "revoked" : over(expires) ? "expired" : "valid";
    return { id, name, role: admin!, account, created, expires, state };
  };
  const all = async () => (await repository.list()).filter(({ admin }) => admin !== undefined);

  return withInputChecks({
    "admins.create": async ({ name, role, account, expires }) => {
      assertNameIsFree(
        name,
        await all(),
        repository.fileConfig()?.tokens.map((each) => each.name) ?? [],
      );
      if (account !== undefined)
        assertAccountExists(account, await repository.readTree(), "/account");
      const { id, secret, digest } = mintKey(undefined, "ta");
      const record: KeyRecord = { id, name, digest, created: now(), expires, account, admin: role };
      await repository.write(record);
      return { secret, admin: shown(record) };
    },
    "admins.list": async () => ({
      admins: (await all()).map(shown),
      ...adminsInFile(repository.fileConfig()),
    }),
    "admins.revoke": async ({ id: idOrName }) => {
      const meant = (await all()).filter(({ id, name }) => id === idOrName || name === idOrName);
      // Several tokens can have had the same name, but only one of them is valid.
      const record = meant.find((each) => shown(each).state !== "revoked") ?? meant.at(-1);
      if (!record)
        return fail("not_found", `Admin "${idOrName}" not found.`, { code: "no_such_admin" });
      const ended = { ...record, revoked: record.revoked ?? now() };
      await repository.write(ended);
      repository
        .sessions?.()
        .end(({ credentialId }) => credentialId === tokenCredentialId(record.id));
      return { admins: [shown(ended)] };
    },
  });
}

/**
 * Returns the admins of gateway.yaml: its tokens by name, and the rights of the identity provider's
 * groups. Contains no secret.
 */
function adminsInFile(file: ReturnType<AdminRepository["fileConfig"]>): {
  readonly tokens: readonly { readonly name: string; readonly role: Role }[];
  readonly oidc: Pick<OidcConfig, "issuer" | "roles"> | null;
} {
  const { tokens = [], oidc } = file ?? {};
  return {
    tokens: tokens.map(({ name, role }) => ({ name, role })),
    oidc: oidc ? { issuer: oidc.issuer, roles: oidc.roles } : null,
  };
}

/**
 * Prefixes that are reserved for the names of other admins in the audit log, such as users of the
 * identity provider.
 */
const RESERVED_PREFIX = /^(oidc|file|token):/;

/**
 * Returns a normalized name. Names that differ only in case or in Unicode form look the same in the
 * audit log.
 */
const foldName = (name: string): string => name.normalize("NFKC").toLowerCase();

/**
 * Throws if a token had this name before. The audit log is kept forever, so a name is used for only
 * one token, even after that token has ended.
 */
function assertNameIsFree(
  name: string,
  admins: readonly Pick<KeyRecord, "id" | "name">[],
  inFile: readonly string[],
): void {
  const failTaken = (why: string): never =>
    fail("conflict", `The admin name "${name}" is not available: ${why}. Choose another name.`, {
      code: "admin_exists",
    });
  if (RESERVED_PREFIX.test(foldName(name)))
    failTaken("oidc:, file: and token: are reserved prefixes");
  if (inFile.some((each) => foldName(each) === foldName(name)))
    failTaken("it is used by a token under admin.tokens in gateway.yaml");
  const same = admins.find(
    (each) =>
      each.id === name || (each.name !== undefined && foldName(each.name) === foldName(name)),
  );
  if (same) failTaken(`it is or was used by the admin token ${same.id}`);
}

/**
 * Maximum number of log pages that are read for one result. If they are not enough, the caller
 * continues with `next`.
 */
const MAX_PAGES = 20;

/**
 * Lists the entries of a time range, newest first. Newer entries are skipped, and the first older
 * entry ends the list.
 */
async function listAuditRange(
  log: NonNullable<Store["audit"]>,
  options: { [M in keyof InputOf<"audit.list">]: InputOf<"audit.list">[M] | undefined } & {
    readonly limit: number;
  },
): Promise<{ items: AuditedCommand[]; next?: string }> {
  const { limit, from = 0, to = Infinity } = options;
  const items: AuditedCommand[] = [];
  let { after } = options;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await log.list({ after, limit: limit - items.length });
    items.push(...page.items.filter(({ at }) => at >= from && at < to));
    const reachedStart = page.items.some(({ at }) => at < from);
    if (page.next === undefined || reachedStart) return { items };
    if (items.length >= limit) return { items, next: page.next };
    after = page.next;
  }
  return { items, ...(after !== undefined && { next: after }) };
}

/**
 * @param log Audit log of the open store.
 * @param accessCounter Counter of the running gateway.
 */
export const createAuditCommands = (
  log: Store["audit"],
  accessCounter?: Pick<AccessCounter, "list">,
) =>
  withInputChecks({
    "audit.list": async ({ after, limit = 100, from, to }) => {
      if (!log)
        return fail("unsupported", "This store does not support an audit log.", {
          code: "no_audit_log",
        });
      const page = await listAuditRange(log, { after, limit, from, to });
      return { ...page, accessCounts: accessCounter?.list() ?? [] };
    },
  });

export const createSessionCommands = (sessions: Sessions, url: () => string | undefined) =>
  withInputChecks({
    "sessions.list": async () => ({ sessions: sessions.list() }),
    "sessions.revoke": async ({ id }) => {
      const revoked = sessions.end((session) => id === undefined || session.id === id);
      if (id !== undefined && revoked === 0)
        fail("not_found", `Session "${id}" not found.`, { code: "no_such_session" });
      return { revoked };
    },
    console: async (_, giver = SHELL_PRINCIPAL) => {
      const at =
        url() ??
        fail("conflict", "The admin listener is not configured. Add `admin:` to gateway.yaml.", {
          code: "no_admin_listener",
        });
      const { name, role, account, credentialId, group, expiresAt: ends } = giver;
      const { code, expiresAt } = sessions.invite({
        name,
        role,
        account,
        credentialId,
        group,
        expiresAt: ends,
      });
      // Browsers do not send the fragment after `#` to the server, so the code is not logged.
      return { url: `${at}/#${code}`, code, expiresAt };
    },
  });
