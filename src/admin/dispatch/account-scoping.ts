// Restricts principals that are limited to one account. The input is narrowed before the command
// runs, and the output is filtered afterwards. An object of another account is reported as not
// found, with the same message and timing.
import type { Store } from "../../plugin/store/store.ts";
import { getFault } from "../../model/error.ts";
import { listAllKeys } from "../../runtime/store-keys.ts";
import type { LiveGeneration } from "../../runtime/generation/generation-slot.ts";
import { fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import { jsonReplacer } from "../socket/control-client.ts";
import type { CommandPrincipal } from "../../runtime/access/principal.ts";
import type { CommandSpec, AccountScopeRule } from "../schema/command-spec.ts";

/** The existing accounts and keys. */
export interface ScopeDirectory {
  /**
   * Returns the path from the outermost account to this account. Contains only the given account if
   * it is unknown.
   */
  accountPath(account: string): readonly string[];
  listKeys(): Promise<readonly Pick<KeyRecord, "id" | "name" | "account" | "admin">[]>;
}

/** Returns the accounts and keys that exist now, for principals that are limited to one account. */
export const createScopeDirectory = (
  store: Pick<Store, "listKeys">,
  current: () => Pick<LiveGeneration, "built">,
): ScopeDirectory => ({
  accountPath(account) {
    try {
      return current().built.gen.accounts.resolve(account).path.split("/");
    } catch (error) {
      if (!getFault(error)) throw error;
      return [account];
    }
  },
  listKeys: listAllKeys(store),
});

/** Throws if the principal is limited to an account and the command concerns the whole gateway. */
export function assertScopable(
  { accountScope: rule }: Pick<CommandSpec, "accountScope">,
  { name, account }: CommandPrincipal,
): void {
  if (account !== undefined && !rule)
    fail(
      "forbidden",
      `${name} is limited to the account ${account}, but this command affects the whole gateway.`,
      { code: "account_only" },
    );
}

/**
 * Returns the input, narrowed to the principal's account. Throws if the input names an object of
 * another account. Called after `assertScopable`.
 */
export async function narrowInput(
  { accountScope: rule }: Pick<CommandSpec, "accountScope">,
  input: JsonObject,
  { account: within }: CommandPrincipal,
  scopes: ScopeDirectory,
): Promise<JsonObject> {
  if (within === undefined || !rule) return input;
  const scoped = { ...input };
  const account =
    rule.accountMember === undefined ? undefined : narrowAccount(scoped, rule, within, scopes);
  if (account !== undefined) scoped[rule.accountMember!] = account;
  if (rule.keyMember !== undefined && scoped[rule.keyMember] !== undefined)
    scoped[rule.keyMember] = await resolveScopedKey(
      scoped[rule.keyMember] as string,
      within,
      scopes,
    );
  return scoped;
}

/** Returns the part of the answer that the principal may see. */
export function filterOutput(
  { accountScope: rule }: Pick<CommandSpec, "accountScope">,
  answer: unknown,
  { account }: CommandPrincipal,
  scopes: ScopeDirectory,
): unknown {
  if (account === undefined || !rule) return answer;
  const members = Object.entries(answer as JsonObject);
  const { shownMembers } = rule;
  const shown: Record<string, JsonObject[string]> = Object.fromEntries(
    shownMembers ? members.filter(([name]) => shownMembers.includes(name)) : members,
  );
  if (rule.filteredList) {
    const [list, by] = rule.filteredList;
    shown[list] = (shown[list] as readonly JsonObject[]).filter((each) =>
      isInScope(each[by], account, scopes),
    );
  }
  for (const list of rule.emptiedLists ?? []) shown[list] = [];
  return hideOuterLimits(shown, account, scopes);
}

/**
 * Removes the usage of limits of parent accounts, because it includes the usage of other accounts.
 */
function hideOuterLimits(answer: JsonObject, within: string, scopes: ScopeDirectory): unknown {
  return JSON.parse(JSON.stringify(answer, jsonReplacer), (name, value: unknown) =>
    name === "limitUsage" && Array.isArray(value)
      ? value.filter(({ scope }: { scope: string }) => {
          const [, account] = /^account:(.*)$/.exec(scope) ?? [];
          return account === undefined || isInScope(account, within, scopes);
        })
      : value,
  );
}

function narrowAccount(
  input: JsonObject,
  { accountMember, defaultsToOwn }: AccountScopeRule,
  within: string,
  scopes: ScopeDirectory,
): Json | undefined {
  const requested = input[accountMember!];
  if (requested === undefined) return defaultsToOwn && within;
  if (isInScope(requested, within, scopes)) return requested;
  return fail("not_found", `Account "${String(requested)}" not found in ${within}.`, {
    code: "no_such_account",
  });
}

/**
 * Returns the ID of a key in the account. All keys are searched, whatever their account is, so that
 * the response time discloses nothing.
 */
async function resolveScopedKey(
  idOrName: string,
  within: string,
  scopes: ScopeDirectory,
): Promise<string> {
  const own = (await scopes.listKeys()).filter(
    ({ account, admin }) => admin === undefined && isInScope(account, within, scopes),
  );
  const ids = new Set(own.filter(({ id }) => id === idOrName).map(({ id }) => id));
  if (ids.size === 0) for (const { id, name } of own) if (name === idOrName) ids.add(id);
  const [id, ...others] = ids;
  if (others.length > 0)
    fail("invalid", `Several keys are named "${idOrName}". Use an ID: ${[...ids].join(", ")}`);
  return id ?? fail("not_found", `Key "${idOrName}" not found.`, { code: "no_such_key" });
}

/**
 * Whether an account is in scope. The account is given by its name or by its path as in ledger
 * rows, such as "acme/research".
 */
function isInScope(value: Json | undefined, account: string, scopes: ScopeDirectory): boolean {
  if (typeof value !== "string") return false;
  return (value.includes("/") ? value.split("/") : scopes.accountPath(value)).includes(account);
}
