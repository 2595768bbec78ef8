// Where a key stands among the accounts: a request looks it up by one name. What comes of an account and all that it stands in is made
// once, and anew when an account of the store is another one.
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { Privacy } from "../../model/facts.ts";
import { fail } from "../../model/error.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import { intersectPatterns } from "../../catalog/pattern.ts";

/** Fails where a key may not ask at a frontend. */
export function assertFrontendAllowed(
  { frontends }: Pick<Identity, "frontends">,
  frontend: string,
): void {
  if (frontends && !frontends.includes(frontend))
    fail("forbidden", `This key may not use ${frontend}. It may use: ${frontends.join(", ")}.`, {
      code: "frontend_not_allowed",
    });
}

type Restrictions = Pick<Identity, "models" | "frontends" | "privacy" | "labels">;

const PRIVACY_ORDER: readonly (Privacy | undefined)[] = ["off", "required", "strict"];

/** Of none, none. */
export const stricterPrivacy = <P extends Privacy | undefined>(a: P, b: P): P =>
  PRIVACY_ORDER.indexOf(b) > PRIVACY_ORDER.indexOf(a) ? b : a;

/** An account, as gateway.yaml or the store has it. */
export type AccountDefinition = Restrictions &
  Pick<AccountRecord, "id" | "parent" | "limits" | "discloseLimits" | "closedAt">;

/** Those of the store. `changes` grows whenever one of them is another one. */
export interface StoredAccounts {
  get(id: string): AccountDefinition | undefined;
  readonly version: number;
}

/** An account with all that it stands in. */
export interface ResolvedAccount {
  /** From the outermost on: "acme/research". */
  readonly path: string;
  /** Of all of them: each holds for each call. */
  readonly limits: readonly Limit[];
  /** Scopes of limits of which clients are told no numbers. */
  readonly hiddenScopes: ReadonlySet<string>;
  readonly restrictions: Restrictions;
}

const NO_STORED_ACCOUNTS: StoredAccounts = { get: () => undefined, version: 0 };

/** Accounts of gateway.yaml, which stand before those of the store: a name that both have means the file's. */
export class Accounts {
  readonly #configured: ReadonlyMap<string, AccountDefinition>;
  readonly #stored: StoredAccounts;
  #storedVersion = 0;
  #resolved = new Map<string, ResolvedAccount>();
  /** By what a plugin or the store says of a key, which is the same object for as long as it is remembered. */
  #identities = new WeakMap<Identity, Identity>();

  constructor(
    file: ReadonlyMap<string, AccountDefinition>,
    stored: StoredAccounts = NO_STORED_ACCOUNTS,
  ) {
    this.#configured = file;
    this.#stored = stored;
    this.#storedVersion = stored.version;
  }

  /** A key of an account that is not there may use nothing: its limits are not known. */
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

  /** From the outermost on. Throws what a key of it is refused with. */
  ancestry(id: string): readonly AccountDefinition[] {
    const chain: AccountDefinition[] = [];
    for (let at: string | undefined = id; at !== undefined;) {
      const account: AccountDefinition | undefined =
        this.#configured.get(at) ?? this.#stored.get(at);
      if (!account) return rejectAccount("unknown_account", id, at, "is not there");
      if (account.closedAt !== undefined)
        return rejectAccount("account_closed", id, at, "is closed");
      // Two gateways that move accounts at once, each under the other's.
      if (chain.includes(account))
        return rejectAccount("account_cycle", id, at, "stands in itself");
      chain.unshift(account);
      at = account.parent;
    }
    return chain;
  }

  /** The key as its account lets it be. */
  restrict(who: Identity, { restrictions }: ResolvedAccount): Identity {
    const known = this.#identities.get(who);
    if (known) return known;
    const narrow = intersectRestrictions(who, restrictions);
    this.#identities.set(who, narrow);
    return narrow;
  }
}

/** An account that tells clients nothing is not even named. */
export const HIDDEN_LIMIT_MESSAGE = "A limit that this key shares with others is reached";

/** Of these limits, those of which a client may be told numbers. */
export const visibleLimits = <L extends Pick<Limit, "scope">>(
  limits: readonly L[],
  branch: ResolvedAccount | undefined,
): readonly L[] =>
  branch && branch.hiddenScopes.size > 0
    ? limits.filter(({ scope }) => !branch.hiddenScopes.has(scope))
    : limits;

/** What the client of a key may be told of: the key's own, and those of its accounts that tell. */
export const clientVisibleLimits = (
  who: Identity | undefined,
  branch: ResolvedAccount | undefined,
): readonly Limit[] => [...(who?.limits ?? []), ...visibleLimits(branch?.limits ?? [], branch)];

function rejectAccount(code: string, id: string, at: string, reason: string): never {
  const own = `This key belongs to the account ${id}, which ${reason}`;
  const outer = `This key belongs to the account ${id}, which stands in the account ${at}, which ${reason}`;
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
    const { models, frontends, privacy, labels } = account;
    narrowing = intersectRestrictions({ models, frontends, privacy, labels }, narrowing);
  }
  return {
    path: chain.map(({ id }) => id).join("/"),
    limits,
    hiddenScopes: quiet,
    restrictions: narrowing,
  };
}

/** Nothing is wider than the outer one allows. Of a label that both have, the inner one's value counts. */
export function intersectRestrictions<T extends Restrictions>(inner: T, outer: Restrictions): T {
  return {
    ...inner,
    models: intersectLists(inner.models, outer.models, intersectPatterns),
    frontends: intersectLists(inner.frontends, outer.frontends, (a, b) => (a === b ? [a] : [])),
    privacy: stricterPrivacy(inner.privacy, outer.privacy),
    labels: inner.labels || outer.labels ? { ...outer.labels, ...inner.labels } : undefined,
  };
}

/** Undefined allows everything. */
function intersectLists(
  inner: readonly string[] | undefined,
  outer: readonly string[] | undefined,
  shared: (a: string, b: string) => readonly string[],
): readonly string[] | undefined {
  if (!inner || !outer) return inner ?? outer;
  return inner.flatMap((a) => outer.flatMap((b) => shared(a, b)));
}
