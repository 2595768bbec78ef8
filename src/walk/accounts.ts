// Where a key stands among the accounts, made once for each generation: a request looks it up by one name.
import type { AccountConfig } from "../config/types.ts";
import type { Privacy } from "../model/facts.ts";
import { fail } from "../model/error.ts";
import type { Identity } from "../plugin/identity.ts";
import type { Limit } from "../plugin/limit.ts";
import { common } from "./candidates/pattern.ts";

type Narrowing = Pick<Identity, "models" | "frontends" | "privacy" | "labels">;

const PRIVACY: readonly (Privacy | undefined)[] = ["off", "required", "strict"];

/** Of none, none. */
export const stricter = <P extends Privacy | undefined>(a: P, b: P): P =>
  PRIVACY.indexOf(b) > PRIVACY.indexOf(a) ? b : a;

/** An account with all that it stands in. */
export interface Branch {
  /** From the outermost on: "acme/research". */
  readonly path: string;
  /** Of all of them: each holds for each call. */
  readonly limits: readonly Limit[];
  readonly narrowing: Narrowing;
}

export class Accounts {
  readonly #branches = new Map<string, Branch>();
  /** By what a plugin or the store says of a key, which is the same object for as long as it is remembered. */
  readonly #identities = new WeakMap<Identity, Identity>();

  /** No account stands in itself, and each parent is there. */
  constructor(accounts: ReadonlyMap<string, AccountConfig>) {
    const branchOf = (id: string): Branch => {
      const known = this.#branches.get(id);
      if (known) return known;
      const { parent, ...own } = accounts.get(id)!;
      const outer = parent === undefined ? undefined : branchOf(parent);
      const branch: Branch = {
        path: outer ? `${outer.path}/${id}` : id,
        limits: [...(outer?.limits ?? []), ...own.limits],
        narrowing: outer ? narrowed(own, outer.narrowing) : own,
      };
      this.#branches.set(id, branch);
      return branch;
    };
    for (const id of accounts.keys()) branchOf(id);
  }

  /** A key of an account that is not there may use nothing: its limits are not known. */
  branch(id: string): Branch {
    return (
      this.#branches.get(id) ??
      fail(
        "forbidden",
        `This key belongs to the account ${id}, which gateway.yaml does not have.`,
        {
          code: "unknown_account",
        },
      )
    );
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
