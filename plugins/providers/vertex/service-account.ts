// A Google service account, and the assertion with which it requests a token. It is signed here,
// because node:crypto supports RS256.
import { createPrivateKey, createSign, type KeyObject } from "node:crypto";
import { fail } from "tollgate/plugin";

/** The parts of a service account's key file that a token request needs. */
export interface ServiceAccount {
  readonly email: string;
  readonly key: KeyObject;
  readonly keyId: string | undefined;
}

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const HOUR_S = 3600;

/** Parses the key file. Error messages never contain parts of the file. */
export function parseServiceAccount(json: string): ServiceAccount {
  let parsedJson: { readonly [name: string]: unknown };
  try {
    parsedJson = JSON.parse(json) as typeof parsedJson;
  } catch {
    return fail("upstream_auth", "service_account is not valid JSON.", {
      code: "bad_service_account",
    });
  }
  const { client_email: email, private_key: pem, private_key_id: keyId } = parsedJson ?? {};
  if (typeof email !== "string" || typeof pem !== "string")
    return fail("upstream_auth", "service_account lacks client_email or private_key.", {
      code: "bad_service_account",
    });
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return fail("upstream_auth", "Cannot read the private_key of service_account.", {
      code: "bad_service_account",
    });
  }
  return { email, key, keyId: typeof keyId === "string" ? keyId : undefined };
}

const base64url = (value: object): string =>
  Buffer.from(JSON.stringify(value)).toString("base64url");

/**
 * Creates an assertion. `audience` is the URL of the token endpoint, and `nowMs` is the time of its
 * clock.
 */
export function createAssertion(account: ServiceAccount, audience: string, nowMs: number): string {
  const iat = Math.floor(nowMs / 1000);
  const head = {
    alg: "RS256",
    typ: "JWT",
    ...(account.keyId !== undefined && { kid: account.keyId }),
  };
  const body = { iss: account.email, scope: SCOPE, aud: audience, iat, exp: iat + HOUR_S };
  const text = `${base64url(head)}.${base64url(body)}`;
  return `${text}.${createSign("RSA-SHA256").update(text).sign(account.key).toString("base64url")}`;
}
