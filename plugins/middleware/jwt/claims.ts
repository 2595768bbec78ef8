// Reads the claims of a token as configured by the operator. An invalid claim rejects the request,
// because it may restrict it in an unknown way.
import { fail, type Identity, type Limit } from "tollgate/plugin";

export type Claims = { readonly [name: string]: unknown };

export interface ClaimMap {
  readonly id: string;
  readonly name?: string | undefined;
  readonly account?: string | undefined;
  readonly models?: string | undefined;
  readonly privacy?: string | undefined;
  readonly labels?: { readonly [label: string]: string } | undefined;
}

export interface IssuerAccounts {
  /** Account names by value of the claim. If unset, the value is the account name. */
  readonly byClaim?: { readonly [said: string]: string } | undefined;
  /** Account of tokens without a known account. If unset, these tokens are rejected. */
  readonly default?: string | undefined;
}

const MAX_CLAIM_LENGTH = 256;

/**
 * Returns the value at a path: `groups`, `groups[0]`, or a JSON pointer such as
 * `/realm_access/roles`.
 */
export function claimAt(claims: Claims, path: string): unknown {
  if (path.startsWith("/")) {
    let value: unknown = claims;
    for (const step of path.slice(1).split("/"))
      value = member(value, step.replaceAll("~1", "/").replaceAll("~0", "~"));
    return value;
  }
  const [, name = path, index] = /^(.*)\[(\d+)\]$/.exec(path) ?? [];
  const value = member(claims, name);
  return index === undefined ? value : member(value, index);
}

/**
 * Returns a member of an object. An email address that the issuer has not verified is ignored,
 * because a user can enter any address.
 */
function member(of: unknown, name: string): unknown {
  if (typeof of !== "object" || of === null || !Object.hasOwn(of, name)) return undefined;
  const { email_verified: verified } = of as Claims;
  return name === "email" && verified !== true && verified !== "true"
    ? undefined
    : (of as Claims)[name];
}

const failBadClaim = (claim: string): never =>
  fail(
    "forbidden",
    /\bemail$/.test(claim)
      ? `The token's claim ${claim} has no verified email address. The claim email_verified must be true.`
      : `Invalid value of the token's claim ${claim}.`,
    { code: "invalid_claim" },
  );

const isText = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= MAX_CLAIM_LENGTH;

function texts(claims: Claims, path: string): readonly string[] | undefined {
  const value = claimAt(claims, path);
  if (value === undefined || value === null) return undefined;
  const all = Array.isArray(value) ? value : [value];
  return all.every(isText) ? all : failBadClaim(path);
}

function labelsOf(claims: Claims, map: NonNullable<ClaimMap["labels"]>): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [label, path] of Object.entries(map)) {
    const value = claimAt(claims, path);
    if (typeof value === "number" || typeof value === "boolean") labels[label] = String(value);
    else if (isText(value)) labels[label] = value;
    else if (value !== undefined && value !== null) failBadClaim(path);
  }
  return labels;
}

function accountOf(
  claims: Claims,
  path: string | undefined,
  { byClaim, default: usual }: IssuerAccounts,
) {
  if (path === undefined) return usual;
  const claimValues = texts(claims, path) ?? [];
  const found = byClaim
    ? claimValues.find((one) => Object.hasOwn(byClaim, one))
    : claimValues.length > 1
      ? failBadClaim(path)
      : claimValues[0];
  const account = byClaim && found !== undefined ? byClaim[found] : found;
  return (
    account ??
    usual ??
    fail("forbidden", `The token's claim ${path} does not name a known account.`, {
      code: "unknown_account",
    })
  );
}

function privacyOf(claims: Claims, path: string): Identity["privacy"] {
  const value = claimAt(claims, path);
  if (value === undefined || value === null) return undefined;
  if (value === "off" || value === "required" || value === "strict") return value;
  if (typeof value === "boolean") return value ? "required" : "off";
  return failBadClaim(path);
}

/**
 * Returns the identity of a token's holder.
 * @param name The operator's name for the issuer.
 */
export function identityOf(
  claims: Claims,
  name: string,
  map: ClaimMap,
  accounts: IssuerAccounts,
  limits: (id: string) => readonly Limit[] | undefined,
): Identity {
  const subject = claimAt(claims, map.id);
  const id = `jwt:${name}:${isText(subject) ? subject : failBadClaim(map.id)}`;
  const called = map.name === undefined ? undefined : claimAt(claims, map.name);
  return {
    id,
    name: isText(called) ? called : undefined,
    account: accountOf(claims, map.account, accounts),
    models:
      map.models === undefined
        ? undefined
        : (texts(claims, map.models) ?? failBadClaim(map.models)),
    privacy: map.privacy === undefined ? undefined : privacyOf(claims, map.privacy),
    labels: map.labels && labelsOf(claims, map.labels),
    limits: limits(id),
  };
}
