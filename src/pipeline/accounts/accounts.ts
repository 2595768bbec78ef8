// Resolves the account that a key belongs to. A request looks the account up by one name. The
// result for an account and its ancestors is cached, and the cache is cleared when an account of
// the store changes.
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { Privacy } from "../../model/facts.ts";
import { fail } from "../../model/error.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import { intersectPatterns } from "../../catalog/model-names.ts";

/** Throws if the key's restrictions do not allow the frontend. */
export function assertFrontendAllowed(
  { frontends }: Pick<Identity, "frontends">,
  frontend: string,
): void {
  if (frontends && !frontends.includes(frontend))
    fail("forbidden", `This key may not use ${frontend}. It may use: ${frontends.join(", ")}.`, {
      code: "frontend_not_allowed",
    });
}

type Restrictions = Pick<Identity, "models" | "frontends" | "tools" | "privacy" | "labels">;

const PRIVACY_ORDER: readonly (Privacy | undefined)[] = ["off", "required", "strict"];

/** Returns the stricter of two privacy levels. If both are undefined, returns undefined. */
export const stricterPrivacy = <P extends Privacy | undefined>(a: P, b: P): P =>
  PRIVACY_ORDER.indexOf(b) > PRIVACY_ORDER.indexOf(a) ? b : a;

/** An account as defined in gateway.yaml or in the store. */
export type AccountDefinition = Restrictions &
  Pick<AccountRecord, "id" | "parent" | "limits" | "discloseLimits" | "closedAt">;

/** The accounts in the store. `version` increases whenever an account changes. */
export interface StoredAccounts {
  get(id: string): AccountDefinition | undefined;
  readonly version: number;
}

/** An account merged with all its ancestors. */
export interface ResolvedAccount {
  /** Account IDs from the outermost account to this account, such as "acme/research". */
  readonly path: string;
  /** IDs of the accounts in `path`. */
  readonly ids: readonly string[];
  /** Limits of the account and all its ancestors. Each limit applies to each call. */
  readonly limits: readonly Limit[];
  /** Scopes of limits whose numbers are hidden from clients. */
  readonly hiddenScopes: ReadonlySet<string>;
  readonly restrictions: Restrictions;
}

const NO_STORED_ACCOUNTS: StoredAccounts = { get: () => undefined, version: 0 };

/**
 * Looks up accounts of gateway.yaml and of the store. If both define an account with the same name,
 * gateway.yaml takes precedence.
 */
export class Accounts {
  readonly #configured: ReadonlyMap<string, AccountDefinition>;
  readonly #stored: StoredAccounts;
  #storedVersion = 0;
  #resolved = new Map<string, ResolvedAccount>();
  /**
   * Restricted identities, by the identity that a plugin or the store returned. The same identity
   * object is returned for as long as the key is cached.
   */
  #identities = new WeakMap<Identity, Identity>();

  constructor(
    file: ReadonlyMap<string, AccountDefinition>,
    stored: StoredAccounts = NO_STORED_ACCOUNTS,
  ) {
    this.#configured = file;
    this.#stored = stored;
    this.#storedVersion = stored.version;
  }

  /**
   * Returns the account with its ancestors. Throws if the account does not exist, because its
   * limits are then unknown.
   */
  resolve(id: string): ResolvedAccount {
    if (this.#stored.version !== this.#storedVersion) {
      this.#storedVersion = this.#stored.version;
      this.#resolved = new Map();
      this.#identities = new WeakMap();
    }
    const known = this.#resolved.get(id);
    if (known) return known;
    const made = resolveAncestry(this.ancestry(id));
    this.#resolved.set(id, made);
    return made;
  }

  /**
   * Returns the account and its ancestors, the outermost first. Throws the error with which a key
   * of the account is rejected.
   */
  ancestry(id: string): readonly AccountDefinition[] {
    const chain: AccountDefinition[] = [];
    for (let at: string | undefined = id; at !== undefined;) {
      const account: AccountDefinition | undefined =
        this.#configured.get(at) ?? this.#stored.get(at);
      if (!account) return rejectAccount("unknown_account", id, at, "does not exist");
      if (account.closedAt !== undefined)
        return rejectAccount("account_closed", id, at, "is closed");
      // A cycle can appear when two gateways move two accounts under each other at the same time.
      if (chain.includes(account))
        return rejectAccount("account_cycle", id, at, "is nested under itself");
      chain.unshift(account);
      at = account.parent;
    }
    return chain;
  }

  /** Returns the key's identity, narrowed by the restrictions of its account. */
  restrict(who: Identity, { ids, restrictions }: ResolvedAccount): Identity {
    const known = this.#identities.get(who);
    if (known) return known;
    const narrow = { ...intersectRestrictions(who, restrictions), accountPath: ids };
    this.#identities.set(who, narrow);
    return narrow;
  }
}

/**
 * Message for a limit of an account that hides its limits from clients. It does not name the
 * account.
 */
export const HIDDEN_LIMIT_MESSAGE = "A limit that this key shares with others is reached";

/** Returns the limits whose numbers clients may see. */
export const visibleLimits = <L extends Pick<Limit, "scope">>(
  limits: readonly L[],
  branch: ResolvedAccount | undefined,
): readonly L[] =>
  branch && branch.hiddenScopes.size > 0
    ? limits.filter(({ scope }) => !branch.hiddenScopes.has(scope))
    : limits;

/**
 * Returns the limits that the client of a key may see: the limits of the key, and the limits of its
 * accounts that disclose limits.
 */
export const clientVisibleLimits = (
  who: Identity | undefined,
  branch: ResolvedAccount | undefined,
): readonly Limit[] => [...(who?.limits ?? []), ...visibleLimits(branch?.limits ?? [], branch)];

function rejectAccount(code: string, id: string, at: string, reason: string): never {
  const own = `This key belongs to the account ${id}, which ${reason}`;
  const outer = `This key belongs to the account ${id}, which is nested under the account ${at}, which ${reason}`;
  return fail("forbidden", `${id === at ? own : outer}.`, { code });
}

function resolveAncestry(chain: readonly AccountDefinition[]): ResolvedAccount {
  const limits: Limit[] = [];
  const quiet = new Set<string>();
  let narrowing: Restrictions = {};
  for (const account of chain) {
    limits.push(...(account.limits ?? []));
    if (account.discloseLimits === "hidden")
      for (const { scope } of account.limits ?? []) quiet.add(scope);
    const { models, frontends, tools, privacy, labels } = account;
    narrowing = intersectRestrictions({ models, frontends, tools, privacy, labels }, narrowing);
  }
  const ids = chain.map(({ id }) => id);
  return {
    path: ids.join("/"),
    ids,
    limits,
    hiddenScopes: quiet,
    restrictions: narrowing,
  };
}

/**
 * Combines two sets of restrictions. The result allows nothing that the outer set forbids. If both
 * set a label, the inner account's value is used.
 */
export function intersectRestrictions<T extends Restrictions>(inner: T, outer: Restrictions): T {
  return {
    ...inner,
    models: intersectLists(inner.models, outer.models, intersectPatterns),
    frontends: intersectLists(inner.frontends, outer.frontends, (a, b) => (a === b ? [a] : [])),
    tools: intersectLists(inner.tools, outer.tools, intersectPatterns),
    privacy: stricterPrivacy(inner.privacy, outer.privacy),
    labels: inner.labels || outer.labels ? { ...outer.labels, ...inner.labels } : undefined,
  };
}

/** Returns the common entries of two lists. An undefined list allows everything. */
function intersectLists(
  inner: readonly string[] | undefined,
  outer: readonly string[] | undefined,
  shared: (a: string, b: string) => readonly string[],
): readonly string[] | undefined {
  if (!inner || !outer) return inner ?? outer;
  return inner.flatMap((a) => outer.flatMap((b) => shared(a, b)));
}
