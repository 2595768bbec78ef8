// Sources of signing keys: the configuration, the environment, or the credential chain of the AWS
// SDK. The chain supports profiles, single sign-on, and the roles of pods, containers, and
// machines.
import {
  fail,
  type AuthRejection,
  type HeadersOut,
  type SignableRequest,
  type TokenAuth,
} from "tollgate/plugin";
import { type SigningKeys, signRequest } from "./signer.ts";
import { parsed, textOf } from "./json.ts";
import { nameOf } from "./errors.ts";

/** A credential as configured by the operator. */
export interface AwsAccount {
  readonly api_key?: string;
  readonly access_key_id?: string;
  readonly secret_access_key?: string;
  readonly session_token?: string;
  readonly from?: "environment" | "chain";
  readonly profile?: string;
}

export const accountSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    api_key: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Bedrock API key, sent as a bearer token. No other field is needed",
    },
    access_key_id: { type: "string", minLength: 1, description: "Access key ID" },
    secret_access_key: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Secret access key",
    },
    session_token: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Session token of temporary access keys",
    },
    from: {
      enum: ["environment", "chain"],
      description:
        "Source of the keys if this credential contains no keys. environment: " +
        "AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and the related variables. " +
        "chain: AWS's default credential chain; requires the package " +
        "@aws-sdk/credential-provider-node. Default: environment",
    },
    profile: {
      type: "string",
      minLength: 1,
      description: "Profile in ~/.aws/config, for from: chain",
    },
  },
} as const;

/** Environment variables that are read. */
export const ENV_VARIABLES = [
  "AWS_BEARER_TOKEN_BEDROCK",
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_REGION",
  "AWS_DEFAULT_REGION",
] as const;

/** Authenticates a request: a bearer token or signing keys. */
export type AwsCredential = { readonly bearer: string } | SigningKeys;

type CredentialChain = (options?: { forceRefresh?: boolean }) => Promise<{
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}>;

/** Credentials by account. */
export interface CredentialCache {
  get(account: AwsAccount): AwsCredential | Promise<AwsCredential>;
  /** Renews a rejected credential. Resolves to whether a different credential is available. */
  renew(account: AwsAccount): Promise<boolean>;
}

export function createCredentialCache(env: (name: string) => string | undefined): CredentialCache {
  const chains = new Map<string, Promise<CredentialChain>>();
  const chainOf = (profile: string | undefined): Promise<CredentialChain> => {
    const key = profile ?? "";
    const known = chains.get(key);
    if (known) return known;
    const made = loadChain(profile);
    chains.set(key, made);
    // A failure is not cached, so the next request tries again.
    made.catch(() => chains.delete(key));
    return made;
  };
  return {
    get(account) {
      const own = configuredCredential(account);
      if (own) return own;
      if (account.from === "chain")
        return chainOf(account.profile).then((chain) => credentialsFromChain(chain));
      return (
        configuredCredential({
          api_key: env("AWS_BEARER_TOKEN_BEDROCK"),
          access_key_id: env("AWS_ACCESS_KEY_ID"),
          secret_access_key: env("AWS_SECRET_ACCESS_KEY"),
          session_token: env("AWS_SESSION_TOKEN"),
        }) ??
        fail("upstream_auth", "No AWS keys found in the credential or the environment.", {
          code: "no_keys",
        })
      );
    },
    async renew(account) {
      if (configuredCredential(account) || account.from !== "chain") return false;
      const chain = await chainOf(account.profile);
      const before = await credentialsFromChain(chain);
      const after = await credentialsFromChain(chain, true);
      return before.token !== after.token || before.id !== after.id;
    },
  };
}

type AccountOptions = { readonly [K in keyof AwsAccount]: AwsAccount[K] | undefined };

function configuredCredential(account: AccountOptions): AwsCredential | undefined {
  if (account.api_key) return { bearer: account.api_key };
  const { access_key_id: id, secret_access_key: secret, session_token: token } = account;
  if (!id || !secret) return undefined;
  return { id, secret, token: token || undefined };
}

async function credentialsFromChain(
  chain: CredentialChain,
  forceRefresh = false,
): Promise<SigningKeys> {
  try {
    const { accessKeyId, secretAccessKey, sessionToken } = await chain({ forceRefresh });
    return { id: accessKeyId, secret: secretAccessKey, token: sessionToken };
  } catch (error) {
    return fail("upstream_auth", "The AWS credential chain found no keys.", {
      code: "no_keys",
      cause: error,
    });
  }
}

async function loadChain(profile: string | undefined): Promise<CredentialChain> {
  try {
    const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
    return defaultProvider(profile === undefined ? {} : { profile });
  } catch (error) {
    return fail(
      "upstream_auth",
      "`from: chain` requires the package @aws-sdk/credential-provider-node. Install " +
        "it next to this package.",
      { code: "missing_package", cause: error },
    );
  }
}

// Authentication with a bearer token or a request signature. Expiring keys are refreshed. If the
// local clock is wrong, signatures use the time of the service's responses.

/**
 * Number of milliseconds by which the service's clock is ahead of the local clock. Shared by all
 * services, which have the same time.
 */
export interface ServiceClock {
  aheadMs: number;
}

/** Returns the authentication for one service. */
export function awsAuth(
  keys: CredentialCache,
  clock: ServiceClock,
  of: {
    readonly region: string;
    readonly service: string;
    /** Origin of S3, whose requests are signed for S3. */
    readonly storage?: string;
  },
): TokenAuth<AwsAccount> {
  const { region } = of;
  const signed = (
    request: SignableRequest,
    proof: Awaited<ReturnType<CredentialCache["get"]>>,
  ): HeadersOut => {
    const isStorage = request.url.origin === of.storage;
    if ("bearer" in proof)
      return isStorage ? failWithoutKeys() : { authorization: `Bearer ${proof.bearer}` };
    const service = isStorage ? "s3" : of.service;
    return signRequest(proof, request, { region, service, now: Date.now() + clock.aheadMs });
  };
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

const failWithoutKeys = (): never =>
  fail("upstream_auth", "Batches require AWS access keys, because an API key cannot access S3.", {
    code: "no_keys",
  });

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
 * Smaller differences do not count as clock skew, because the same signature would be rejected
 * again.
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
