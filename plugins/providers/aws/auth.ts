// Authentication with a bearer token or a request signature. Expiring keys are refreshed. If the
// local clock is wrong, signatures use the time of the service's responses.
import type { AuthRejection, HeadersOut, SignableRequest, TokenAuth } from "tollgate/plugin";
import { parsed, textOf } from "./json.ts";
import type { AwsAccount, CredentialCache } from "./aws-credentials.ts";
import { nameOf } from "./errors.ts";
import { signRequest } from "./signer.ts";

/**
 * How far the service's clock is ahead of the local clock, in milliseconds. Shared by all services,
 * which have the same time.
 */
export interface ServiceClock {
  aheadMs: number;
}

/** Returns the authentication for one service. */
export function awsAuth(
  keys: CredentialCache,
  clock: ServiceClock,
  of: { readonly region: string; readonly service: string },
): TokenAuth<AwsAccount> {
  const signed = (
    request: SignableRequest,
    proof: Awaited<ReturnType<CredentialCache["get"]>>,
  ): HeadersOut =>
    "bearer" in proof
      ? { authorization: `Bearer ${proof.bearer}` }
      : signRequest(proof, request, { ...of, now: Date.now() + clock.aheadMs });
  return {
    sign(request, account) {
      const proof = keys.get(account);
      return "then" in proof
        ? proof.then((found) => signed(request, found))
        : signed(request, proof);
    },
    async renewToken(refusal, account) {
      if (isSkewed(refusal)) return adjustClock(clock, refusal);
      return isExpired(refusal) ? keys.renew(account) : false;
    },
  };
}

const errorNameIn = ({ headers, body }: AuthRejection): string =>
  nameOf(headers["x-amzn-errortype"]) ?? nameOf(parsed(body)?.["__type"]) ?? "";

const wordsOf = ({ body }: AuthRejection): string => {
  const json = parsed(body);
  return textOf(json?.["message"]) ?? textOf(json?.["Message"]) ?? "";
};

/**
 * Errors for a wrong time. A signature is valid for 5 minutes before and after the service's time.
 */
const SKEW_ERRORS = /^(?:RequestTimeTooSkewed|RequestExpired|RequestInTheFuture)/;
const SKEW_TEXT = /signature (?:expired|not yet current)|time ?skew/i;

const isSkewed = (refusal: AuthRejection): boolean =>
  SKEW_ERRORS.test(errorNameIn(refusal)) || SKEW_TEXT.test(wordsOf(refusal));

/**
 * Smaller differences do not count as clock skew, since the same signature would be rejected again.
 */
const MIN_SKEW_MS = 5_000;

function adjustClock(clock: ServiceClock, { headers }: AuthRejection): boolean {
  const there = Date.parse(textOf(headers["date"]) ?? "");
  if (!Number.isFinite(there)) return false;
  const ahead = there - Date.now();
  if (Math.abs(ahead - clock.aheadMs) < MIN_SKEW_MS) return false;
  clock.aheadMs = ahead;
  return true;
}

const EXPIRED_ERRORS = /^(?:ExpiredToken|UnrecognizedClient|InvalidClientTokenId)/;
const EXPIRED_TEXT = /security token included in the request is (?:expired|invalid)/i;

const isExpired = (refusal: AuthRejection): boolean =>
  EXPIRED_ERRORS.test(errorNameIn(refusal)) || EXPIRED_TEXT.test(wordsOf(refusal));
