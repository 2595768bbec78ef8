// Validates the tokens of one issuer: signature, audience, and validity period.
import { hash } from "node:crypto";
import { createFault, type Claims, type Identity } from "tollgate/plugin";
import { decodeJwt, errors, jwtVerify } from "jose";
import type { KeySet } from "./key-set.ts";

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

/** Returns the claims of a validated token for frontends. Entra ID sends scopes in `scp`. */
export function readAccessToken(token: string): NonNullable<Identity["accessToken"]> {
  const { iss, sub, aud, scope, scp } = decodeJwt(token);
  return {
    issuer: iss ?? "",
    subject: sub ?? "",
    audience: [aud ?? []].flat(),
    scopes: [scope ?? scp].flat().flatMap((one) => (typeof one === "string" ? one.split(" ") : [])),
    digest: hash("sha256", token),
  };
}
