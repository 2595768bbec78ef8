// Identifies clients by tokens of an identity provider instead of keys: users, and programs of a
// cloud or CI. The claims of the token determine the permissions.
import { createHash } from "node:crypto";
import {
  CLAIM_ACCOUNT_SCHEMAS,
  CLAIM_MAP_SCHEMA,
  defineMiddleware,
  identityOfClaims,
  isAccessToken,
  LIMIT_SCHEMA,
  parseScopedLimit,
  type ClaimMap,
  type Claims,
  type Context,
  type Identity,
} from "tollgate/plugin";
import {
  ALGORITHMS,
  type ValidatedToken,
  validateToken,
  invalidTokenError,
  readAccessToken,
  readIssuer,
  type Issuer,
} from "./jwt/claims.ts";
import { fromFile, fromUrl, KeySet, emptyKeyCache } from "./jwt/key-set.ts";

/** Maximum length in characters. Request headers cannot contain longer tokens. */
const MAX_TOKEN_LENGTH = 16_384;
/**
 * A token has three parts, and the first part begins with a JSON object. Tollgate's own keys
 * contain no dot.
 */
const JWT_SHAPE = /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/;
/**
 * Time for which a validated token is cached, in milliseconds. A token that its issuer revoked is
 * accepted for up to this time.
 */
const VALIDATION_CACHE_MS = 60_000;
const MAX_CACHED_TOKENS = 10_000;

const claim = (description: string) => ({ type: "string", minLength: 1, description }) as const;

export default defineMiddleware({
  api: 1,
  name: "jwt",
  summary: "Authenticate clients by tokens of identity providers",
  stability: "beta",
  sends: "nowhere",
  needs: {
    files: ({ issuers }) =>
      Object.values(issuers).flatMap(({ jwks_file: file }) => (file === undefined ? [] : [file])),
  },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["issuers"],
    properties: {
      issuers: {
        type: "object",
        minProperties: 1,
        // If names could contain a colon, two issuers could create the same ID for two users.
        propertyNames: { pattern: "^[^:]+$", "x-expects": "a name without a colon" },
        description: "Issuers by name. The ledger identifies a client as jwt:<name>:<subject>",
        additionalProperties: {
          type: "object",
          additionalProperties: false,
          required: ["issuer", "audience"],
          properties: {
            issuer: claim("Issuer of the tokens: the exact value of the iss claim"),
            audience: {
              type: "array",
              items: { type: "string", minLength: 1 },
              minItems: 1,
              description: "Accepted audiences. The aud claim must contain one of these values",
            },
            jwks: {
              type: "string",
              pattern: "^https?://",
              "x-expects": "an address such as https://login.example.com/jwks.json",
              "x-origin": true,
              description: "URL of the issuer's public keys (JWKS)",
            },
            jwks_file: {
              ...claim(
                "File with the issuer's public keys, as an alternative to jwks. Relative to " +
                  "gateway.yaml",
              ),
              "x-path": true,
            },
            algorithms: {
              type: "array",
              items: { enum: ALGORITHMS },
              minItems: 1,
              uniqueItems: true,
              default: [...ALGORITHMS],
              description: "Accepted signature algorithms",
            },
            clock_skew_s: {
              type: "integer",
              minimum: 0,
              maximum: 600,
              default: 60,
              description: "Tolerated clock difference to the issuer, in seconds",
            },
            map: CLAIM_MAP_SCHEMA,
            ...CLAIM_ACCOUNT_SCHEMAS,
            limits: {
              type: "array",
              items: LIMIT_SCHEMA,
              description: "Limits of each client of the issuer",
            },
          },
        },
      },
    },
  },
  *check({ issuers }) {
    const seen = new Map<string, string>();
    for (const [name, { issuer, jwks, jwks_file: file }] of Object.entries(issuers)) {
      const path = `/issuers/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      if ((jwks === undefined) === (file === undefined))
        yield { path, message: "requires jwks or jwks_file, but not both" };
      const twin = seen.get(issuer);
      if (twin !== undefined)
        yield { path: `${path}/issuer`, message: `duplicates the issuer of ${twin}` };
      seen.set(issuer, name);
    }
  },
  setup({ issuers }, ctx) {
    const known = new Map(
      Object.entries(issuers).map(([name, of]) => [of.issuer, createIssuer(name, of, ctx)]),
    );
    const holders = new Map<string, ValidatedToken>();
    const remember = (digest: string, holder: ValidatedToken): void => {
      if (holders.size >= MAX_CACHED_TOKENS) holders.delete(holders.keys().next().value!);
      holders.set(digest, holder);
    };
    const find = async (token: string, digest: string): Promise<Identity> => {
      const issuer = known.get(readIssuer(token)) ?? fail("the issuer is unknown");
      const now = Date.now();
      const holder = await validateToken(token, issuer, now);
      const until = Math.min(holder.validUntil, now + VALIDATION_CACHE_MS);
      const identity = { ...holder.identity, accessToken: readAccessToken(token) };
      remember(digest, { identity, validUntil: until });
      return identity;
    };
    return {
      admit(x, secret) {
        if (x.identity || !secret?.startsWith("eyJ")) return undefined;
        if (secret.length > MAX_TOKEN_LENGTH) return fail("the token is too long");
        // Another middleware may recognize the secret.
        if (!JWT_SHAPE.test(secret) || isAccessToken(secret)) return undefined;
        // The hash covers the whole token, because two tokens may differ only in the last
        // character.
        const digest = createHash("sha256").update(secret).digest("base64");
        const holder = holders.get(digest);
        const now = Date.now();
        // If the clock was set back, a cached entry would be valid for too long, so it is ignored.
        if (holder && holder.validUntil > now && holder.validUntil - now <= VALIDATION_CACHE_MS)
          return x.identify(holder.identity);
        if (holder) holders.delete(digest);
        return find(secret, digest).then((who) => x.identify(who));
      },
    };
  },
});

const fail = (why: string): never => {
  throw invalidTokenError(why);
};

interface IssuerOptions {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly jwks?: string | undefined;
  readonly jwks_file?: string | undefined;
  readonly algorithms: Issuer["algorithms"];
  readonly clock_skew_s: number;
  readonly map: ClaimMap;
  readonly accounts?: { readonly [claimValue: string]: string } | undefined;
  readonly account?: string | undefined;
  readonly limits?: readonly string[] | undefined;
}

function createIssuer(
  name: string,
  of: IssuerOptions,
  ctx: Pick<Context, "fetch" | "readFile" | "shared" | "log">,
): Issuer {
  const { issuer, audience, algorithms, map, accounts, account: usual, limits } = of;
  const source =
    of.jwks === undefined ? fromFile(of.jwks_file!, ctx.readFile) : fromUrl(of.jwks, ctx.fetch);
  const keys = ctx.shared(`${issuer}\n${of.jwks ?? of.jwks_file}`, emptyKeyCache);
  const limitsOf = (id: string) => limits?.map((each) => parseScopedLimit(each, `key:${id}`));
  return {
    issuer,
    audience,
    algorithms,
    skewMs: of.clock_skew_s * 1_000,
    keys: new KeySet(keys, source, ctx.log),
    identity: (claims: Claims) =>
      identityOfClaims(claims, `jwt:${name}`, map, { byClaim: accounts, default: usual }, limitsOf),
  };
}
