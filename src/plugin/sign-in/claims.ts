// Maps the claims of a token to the identity of a client, as the operator configures it. An invalid
// claim rejects the client, because it may restrict it in an unknown way.
import { fail } from "../../model/error.ts";
import type { Identity } from "../identity.ts";
import type { Limit } from "../store/limit.ts";

/** Claims of a token, by name. */
export type Claims = { readonly [name: string]: unknown };

/** Claims that contain the properties of a client, each as a path of `claimAt`. */
export interface ClaimMap {
  /** Claim with the ID of the client. */
  readonly id: string;
  /** Claim with the display name. */
  readonly name?: string | undefined;
  /** Claim with the account, or with a value that `ClaimAccounts.byClaim` maps to an account. */
  readonly account?: string | undefined;
  /** Claim with the models that the client may use. */
  readonly models?: string | undefined;
  /** Claim with the minimum privacy of requests. */
  readonly privacy?: string | undefined;
  /** Labels of the ledger rows, each with its claim. */
  readonly labels?: { readonly [label: string]: string } | undefined;
}

/** Accounts of the clients of an issuer. */
export interface ClaimAccounts {
  /** Account names by value of the claim. If unset, the value is the account name. */
  readonly byClaim?: { readonly [claimValue: string]: string } | undefined;
  /** Account of clients without a known account. If unset, these clients are rejected. */
  readonly default?: string | undefined;
}

const claim = (description: string) => ({ type: "string", minLength: 1, description }) as const;
const account = { type: "string", minLength: 1, "x-account": true } as const;

/** Schema of the option with which operators write a `ClaimMap`. */
export const CLAIM_MAP_SCHEMA = {
  type: "object",
  additionalProperties: false,
  default: {},
  description:
    "Claims that contain the client's properties: a claim path such as groups[0], or " +
    "a JSON pointer",
  properties: {
    id: { ...claim("Claim with the ID of the client"), default: "sub" },
    name: claim("Claim with the display name of the client"),
    account: claim("Claim with the account, or with a value that `accounts` maps to an account"),
    models: claim("Claim with the models that the client may use"),
    privacy: claim("Claim with the minimum privacy of requests: a level, or true for required"),
    labels: {
      type: "object",
      additionalProperties: { type: "string", minLength: 1 },
      description: "Labels of the ledger rows, each with its claim",
    },
  },
} as const;

/** Schemas of the options with which operators write `ClaimAccounts`. */
export const CLAIM_ACCOUNT_SCHEMAS = {
  accounts: {
    type: "object",
    additionalProperties: account,
    description:
      "Accounts by claim value. If the claim is a list, its first value with an entry " +
      "here applies",
  },
  account: {
    ...account,
    description: "Account for tokens without an account. If unset, these tokens are rejected",
  },
} as const;

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

function failBadClaim(claim: string): never {
  const why = /\bemail$/.test(claim)
    ? `The token's claim ${claim} has no verified email address. The claim email_verified must be true.`
    : `Invalid value of the token's claim ${claim}.`;
  return fail("forbidden", why, { code: "invalid_claim" });
}

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
  { byClaim, default: usual }: ClaimAccounts,
) {
  if (path === undefined) return usual;
  const claimValues = texts(claims, path) ?? [];
  const found = byClaim
    ? claimValues.find((one) => Object.hasOwn(byClaim, one))
    : claimValues.length > 1
      ? failBadClaim(path)
      : claimValues[0];
  const account = byClaim && found !== undefined ? byClaim[found] : found;
  const name = account ?? usual;
  if (name !== undefined) return name;
  const why = `The token's claim ${path} does not name a known account.`;
  return fail("forbidden", why, { code: "unknown_account" });
}

function privacyOf(claims: Claims, path: string): Identity["privacy"] {
  const value = claimAt(claims, path);
  if (value === undefined || value === null) return undefined;
  if (value === "off" || value === "required" || value === "strict") return value;
  if (typeof value === "boolean") return value ? "required" : "off";
  return failBadClaim(path);
}

/**
 * Returns the identity of the client that claims describe. Throws the fault for the client if a
 * claim is invalid or names no known account.
 * @param issuer Prefix of the ID, such as `jwt:corp`.
 */
export function identityOfClaims(
  claims: Claims,
  issuer: string,
  map: ClaimMap,
  accounts: ClaimAccounts,
  limits: (id: string) => readonly Limit[] | undefined,
): Identity {
  const subject = claimAt(claims, map.id);
  const id = `${issuer}:${isText(subject) ? subject : failBadClaim(map.id)}`;
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
