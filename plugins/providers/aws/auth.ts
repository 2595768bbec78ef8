// How a request is let in: a bearer token as it is, or a signature by the service's clock. Keys that end are fetched anew, and a
// clock that is wrong here is set by what the service says it is there.
import type { AuthRefusal, HeadersOut, Signable, TokenAuth } from "tollgate/plugin";
import { parsed, textOf } from "./json.ts";
import type { Account, KeyRing } from "./keys.ts";
import { nameOf } from "./refusal.ts";
import { sign } from "./signer.ts";

/** How far the service's clock is from ours, in milliseconds. One for all services: they keep one time. */
export interface Clock {
  aheadMs: number;
}

/** As a request is let in at one service. */
export function awsAuth(
  keys: KeyRing,
  clock: Clock,
  of: { readonly region: string; readonly service: string },
): TokenAuth<Account> {
  const signed = (request: Signable, proof: Awaited<ReturnType<KeyRing["proof"]>>): HeadersOut =>
    "bearer" in proof
      ? { authorization: `Bearer ${proof.bearer}` }
      : sign(proof, {
          method: request.method,
          url: request.url,
          type: request.headers["content-type"],
          body: request.body,
          region: of.region,
          service: of.service,
          now: Date.now() + clock.aheadMs,
        });
  return {
    sign(request, account) {
      const proof = keys.proof(account);
      return "then" in proof
        ? proof.then((found) => signed(request, found))
        : signed(request, proof);
    },
    async refused(refusal, account) {
      if (isSkewed(refusal)) return reset(clock, refusal);
      return isOver(refusal) ? keys.renew(account) : false;
    },
  };
}

const named = ({ headers, body }: AuthRefusal): string =>
  nameOf(headers["x-amzn-errortype"]) ?? nameOf(parsed(body)?.["__type"]) ?? "";

const wordsOf = ({ body }: AuthRefusal): string => {
  const said = parsed(body);
  return textOf(said?.["message"]) ?? textOf(said?.["Message"]) ?? "";
};

/** A signature is good for five minutes on either side of the service's time. */
const SKEWED = /^(?:RequestTimeTooSkewed|RequestExpired|RequestInTheFuture)/;
const SKEWED_WORDS = /signature (?:expired|not yet current)|time ?skew/i;

const isSkewed = (refusal: AuthRefusal): boolean =>
  SKEWED.test(named(refusal)) || SKEWED_WORDS.test(wordsOf(refusal));

/** Less than this is no clock that is wrong: the same signature would be refused again. */
const NOTICED_MS = 5_000;

function reset(clock: Clock, { headers }: AuthRefusal): boolean {
  const there = Date.parse(textOf(headers["date"]) ?? "");
  if (!Number.isFinite(there)) return false;
  const ahead = there - Date.now();
  if (Math.abs(ahead - clock.aheadMs) < NOTICED_MS) return false;
  clock.aheadMs = ahead;
  return true;
}

const OVER = /^(?:ExpiredToken|UnrecognizedClient|InvalidClientTokenId)/;
const OVER_WORDS = /security token included in the request is (?:expired|invalid)/i;

const isOver = (refusal: AuthRefusal): boolean =>
  OVER.test(named(refusal)) || OVER_WORDS.test(wordsOf(refusal));
