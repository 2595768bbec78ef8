// Where a key stands among the accounts: a request looks it up by one name. What comes of an account and all that it stands in is made
// once, and anew when an account of the store is another one.
import type { AccountRecord } from "../plugin/account.ts";
import type { Privacy } from "../model/facts.ts";
import { fail } from "../model/error.ts";
import type { Identity } from "../plugin/identity.ts";
import type { Limit } from "../plugin/limit.ts";
import { common } from "./candidates/pattern.ts";

/** Fails where a key may not ask at a frontend. */
export function mayAsk({ frontends }: Pick<Identity, "frontends">, frontend: string): void {
  if (frontends && !frontends.includes(frontend))
    fail("forbidden", `This key may not use ${frontend}. It may use: ${frontends.join(", ")}.`, {
      code: "frontend_not_allowed",
    });
}

type Narrowing = Pick<Identity, "models" | "frontends" | "privacy" | "labels">;

const PRIVACY: readonly (Privacy | undefined)[] = ["off", "required", "strict"];

/** Of none, none. */
export const stricter = <P extends Privacy | undefined>(a: P, b: P): P =>
  PRIVACY.indexOf(b) > PRIVACY.indexOf(a) ? b : a;

/** An account, as gateway.yaml or the store has it. */
export type StandingAccount = Narrowing &
  Pick<AccountRecord, "id" | "parent" | "limits" | "tells" | "ended">;

/** Those of the store. `changes` grows whenever one of them is another one. */
export interface StoredAccounts {
  get(id: string): StandingAccount | undefined;
  readonly changes: number;
}

/** An account with all that it stands in. */
export interface Branch {
  /** From the outermost on: "acme/research". */
  readonly path: string;
  /** Of all of them: each holds for each call. */
  readonly limits: readonly Limit[];
  /** Scopes of limits of which clients are told no numbers. */
  readonly quiet: ReadonlySet<string>;
  readonly narrowing: Narrowing;
}

const NOTHING_STORED: StoredAccounts = { get: () => undefined, changes: 0 };

/** Accounts of gateway.yaml, which stand before those of the store: a name that both have means the file's. */
export class Accounts {
  readonly #file: ReadonlyMap<string, StandingAccount>;
  readonly #stored: StoredAccounts;
  #changes = 0;
  #branches = new Map<string, Branch>();
  /** By what a plugin or the store says of a key, which is the same object for as long as it is remembered. */
  #identities = new WeakMap<Identity, Identity>();

  constructor(file: ReadonlyMap<string, StandingAccount>, stored: StoredAccounts = NOTHING_STORED) {
    this.#file = file;
    this.#stored = stored;
    this.#changes = stored.changes;
  }

  /** A key of an account that is not there may use nothing: its limits are not known. */
  branch(id: string): Branch {
    if (this.#stored.changes !== this.#changes) {
      this.#changes = this.#stored.changes;
      this.#branches = new Map();
      this.#identities = new WeakMap();
    }
    const known = this.#branches.get(id);
    if (known) return known;
    const made = branchOf(this.chain(id));
    this.#branches.set(id, made);
    return made;
  }

  /** From the outermost on. Throws what a key of it is refused with. */
  chain(id: string): readonly StandingAccount[] {
    const chain: StandingAccount[] = [];
    for (let at: string | undefined = id; at !== undefined;) {
      const account: StandingAccount | undefined = this.#file.get(at) ?? this.#stored.get(at);
      if (!account) return refused("unknown_account", id, at, "is not there");
      if (account.ended !== undefined) return refused("account_ended", id, at, "has ended");
      // Two gateways that move accounts at once, each under the other's.
      if (chain.includes(account)) return refused("account_cycle", id, at, "stands in itself");
      chain.unshift(account);
      at = account.parent;
    }
    return chain;
  }

  /** The key as its account lets it be. */
  identity(who: Identity, { narrowing }: Branch): Identity {
    const known = this.#identities.get(who);
    if (known) return known;
    const narrow = narrowed(who, narrowing);
    this.#identities.set(who, narrow);
    return narrow;
  }
}

/** An account that tells clients nothing is not even named. */
export const A_LIMIT = "A limit that this key shares with others is reached";

/** Of these limits, those of which a client may be told numbers. */
export const telling = <L extends Pick<Limit, "scope">>(
  limits: readonly L[],
  branch: Branch | undefined,
): readonly L[] =>
  branch && branch.quiet.size > 0 ? limits.filter(({ scope }) => !branch.quiet.has(scope)) : limits;

/** What the client of a key may be told of: the key's own, and those of its accounts that tell. */
export const toldLimits = (
  who: Identity | undefined,
  branch: Branch | undefined,
): readonly Limit[] => [...(who?.limits ?? []), ...telling(branch?.limits ?? [], branch)];

function refused(code: string, id: string, at: string, how: string): never {
  const own = `This key belongs to the account ${id}, which ${how}`;
  const outer = `This key belongs to the account ${id}, which stands in the account ${at}, which ${how}`;
  return fail("forbidden", `${id === at ? own : outer}.`, { code });
}

function branchOf(chain: readonly StandingAccount[]): Branch {
  const limits: Limit[] = [];
  const quiet = new Set<string>();
  let narrowing: Narrowing = {};
  for (const account of chain) {
    limits.push(...(account.limits ?? []));
    if (account.tells === "nothing") for (const { scope } of account.limits ?? []) quiet.add(scope);
    const { models, frontends, privacy, labels } = account;
    narrowing = narrowed({ models, frontends, privacy, labels }, narrowing);
  }
  return { path: chain.map(({ id }) => id).join("/"), limits, quiet, narrowing };
}

/** Nothing is wider than the outer one allows. Of a label that both have, the inner one's value counts. */
export function narrowed<T extends Narrowing>(inner: T, outer: Narrowing): T {
  return {
    ...inner,
    models: both(inner.models, outer.models, common),
    frontends: both(inner.frontends, outer.frontends, (a, b) => (a === b ? [a] : [])),
    privacy: stricter(inner.privacy, outer.privacy),
    labels: inner.labels || outer.labels ? { ...outer.labels, ...inner.labels } : undefined,
  };
}

/** Undefined allows everything. */
function both(
  inner: readonly string[] | undefined,
  outer: readonly string[] | undefined,
  shared: (a: string, b: string) => readonly string[],
): readonly string[] | undefined {
  if (!inner || !outer) return inner ?? outer;
  return inner.flatMap((a) => outer.flatMap((b) => shared(a, b)));
}
