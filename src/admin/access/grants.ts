// What a key or an account may use, as a command says it: looked at, and put into the form in which it is kept.
import { nearest } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import type { KeyDefaults, KeyLimit } from "../../plugin/store/account.ts";
import type { AccountConfig } from "../../config/gateway-config.ts";
import type { Identity } from "../../plugin/identity.ts";
import {
  type Limit,
  parseScopedLimit,
  formatLimit,
  type LimitUsage,
} from "../../plugin/store/limit.ts";
import type { AccountTree } from "./account-tree.ts";

/** What grants are compared with. What they name of models may come later; an account must be there. */
export interface GrantTargets {
  /** Whether there is a model, an alias or a provider that a pattern means. */
  hasModel(pattern: string): boolean;
  hasFrontend(name: string): boolean;
  /** Of gateway.yaml. */
  readonly fileAccounts: ReadonlyMap<string, AccountConfig>;
  /** "gateway.yaml:12". */
  locationOf(account: string): string;
  /** Of new keys in no account. */
  readonly keyDefaults: KeyDefaults | undefined;
}

/** A key or an account that is not what its operator looked at is not changed. */
export function assertVersion(version: number | undefined, what: string, is: number): void {
  if (version !== undefined && version !== is)
    fail("conflict", `The ${what} has changed since version ${version}: it is at version ${is}.`, {
      code: "version_conflict",
      details: { version: is },
    });
}

/** Every request of a key whose account is not there, or has ended, is refused. */
export function assertAccountExists(
  account: string | undefined,
  tree: AccountTree,
  param: string,
): void {
  if (account === undefined) return;
  const closed = tree.get(account) && tree.closedReason(account);
  if (closed === "closed")
    fail("conflict", `The account ${account}, or one of its parents, is closed.`, {
      code: "account_closed",
      param,
    });
  if (tree.get(account)) return;
  const near = nearest(
    account,
    tree.all().map(({ id }) => id),
  );
  fail(
    "invalid",
    `There is no account "${account}".${near === undefined ? " tollgate accounts create makes one." : ` Did you mean "${near}"?`}`,
    { code: "unknown_account", param },
  );
}

export function unknownGrantWarnings(
  { models, frontends }: Pick<Identity, "models" | "frontends">,
  targets: GrantTargets,
): string[] {
  const model = (models ?? []).filter((pattern) => !targets.hasModel(pattern));
  const frontend = (frontends ?? []).filter((name) => !targets.hasFrontend(name));
  return [
    ...model.map((pattern) => `Nothing that is here matches the model "${pattern}".`),
    ...frontend.map((name) => `No frontend that is here is named "${name}".`),
  ];
}

/** Undefined: none. */
export const toScopedLimits = (limits: readonly KeyLimit[], scope: string): Limit[] | undefined =>
  limits.length > 0 ? limits.map((limit) => ({ scope, ...limit })) : undefined;

/** The limits of a command's input. An amount that a number can hold exactly is kept as a number. */
export const parseLimits = (limits: readonly string[]): KeyLimit[] =>
  limits.map((text) => {
    const { scope: _, max, ...limit } = parseScopedLimit(text, "");
    return { ...limit, max: max <= Number.MAX_SAFE_INTEGER ? Number(max) : max };
  });

export const toLabels = (
  labels: Readonly<Record<string, unknown>> | undefined,
): Record<string, string> | undefined =>
  labels && Object.keys(labels).length > 0 ? (labels as Record<string, string>) : undefined;

/** The same of what is kept in another form than it is said in; an empty one is none. */
export const mergeConverted = <S, T>(
  now: S | null | undefined,
  before: T | undefined,
  kept: (now: S) => T | undefined,
): T | undefined => (now === undefined ? before : now === null ? undefined : kept(now));

/** What an update says in place of what was: null takes it away, what it does not say stays. */
export const mergeValue = <T>(now: T | null | undefined, before: T | undefined): T | undefined =>
  now === undefined ? before : (now ?? undefined);

/** How far a limit is used, in an answer. `max`, `used`, `held` and `left` count `unit`; nano_usd is a billionth of a dollar. */
export interface ShownLimitUsage extends Omit<LimitUsage, "per"> {
  /** As in usd=5/month. */
  readonly limit: string;
}

export const toLimitUsage = ({ per, ...count }: LimitUsage): ShownLimitUsage => ({
  ...count,
  limit: formatLimit({ ...count, per }),
});

/** The limits and the new keys' limits of a record, as texts. */
export const shownLimits = ({
  limits,
  defaults,
}: {
  limits?: readonly KeyLimit[] | undefined;
  defaults?: KeyDefaults | undefined;
}) => ({
  ...(limits && { limits: limits.map(formatLimit) }),
  ...(defaults && { defaults: { limits: defaults.limits.map(formatLimit) } }),
});
