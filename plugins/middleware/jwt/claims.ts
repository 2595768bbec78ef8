// Reads the claims of a token as configured by the operator. An invalid claim rejects the request,
// because it may restrict it in an unknown way.
import { fail, type Identity, type Limit, createFault } from "tollgate/plugin";
import { decodeJwt, errors, jwtVerify } from "jose";
import type { KeySet } from "./key-set.ts";

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
  readonly byClaim?: { readonly [claimValue: string]: string } | undefined;
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

// Validates the tokens of one issuer: signature, audience, and validity period.

export const ALGORITHMS = ["RS256", "ES256", "EdDSA"] as const;

export interface Issuer {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly algorithms: readonly (typeof ALGORITHMS)[number][];
  readonly skewMs: number;
  readonly keys: KeySet;
  readonly identity: (claims: Claims) => Identity;
}

/**
 * The holder of a token, and the time for which the token may be accepted without another
 * validation.
 */
export interface ValidatedToken {
  readonly identity: Identity;
  /** Unix milliseconds. */
  readonly validUntil: number;
}

const ERROR_MESSAGES: { readonly [code: string]: string } = {
  ERR_JWT_EXPIRED: "the token has expired",
  ERR_JWKS_NO_MATCHING_KEY: "the token is not signed with a known key of the issuer",
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "the token does not identify its signing key",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "the signature is invalid",
  ERR_JOSE_ALG_NOT_ALLOWED: "the signature algorithm is not allowed",
};

export async function validateToken(
  token: string,
  { issuer, audience, algorithms, skewMs, keys, identity }: Issuer,
  now: number,
): Promise<ValidatedToken> {
  const options = {
    issuer,
    audience: [...audience],
    algorithms: [...algorithms],
    clockTolerance: skewMs / 1_000,
    currentDate: new Date(now),
    requiredClaims: ["exp"],
  };
  try {
    const { payload } = await jwtVerify(token, keys.get, options);
    if (typeof payload.iat === "number" && payload.iat * 1_000 > now + skewMs)
      throw invalidTokenError("the token is not valid yet");
    return { identity: identity(payload), validUntil: payload.exp! * 1_000 };
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    const claim = error instanceof errors.JWTClaimValidationFailed ? error.claim : undefined;
    throw invalidTokenError(
      claim ? `the claim ${claim} is not accepted` : ERROR_MESSAGES[error.code],
    );
  }
}

/** The error tells a client why its token is invalid. The reason does not help to forge a token. */
export const invalidTokenError = (why = "the token cannot be parsed"): Error =>
  createFault("unauthenticated", `Invalid token: ${why}.`, { code: "invalid_token" });

/** Reads the issuer before the token is verified, to select the keys that verify it. */
export function readIssuer(token: string): string {
  try {
    return decodeJwt(token).iss ?? "";
  } catch {
    throw invalidTokenError();
  }
}
