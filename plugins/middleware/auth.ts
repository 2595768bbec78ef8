// Identifies clients by API keys. The store and gateway.yaml contain only the SHA-256 of a key,
// never the key itself.
import { createHash, timingSafeEqual } from "node:crypto";
import {
  AccessTokens,
  defineMiddleware,
  fail,
  getFault,
  isAccessToken,
  LIMIT_SCHEMA,
  openClientSecret,
  parseScopedLimit,
  type RequestHead,
  type Identity,
  type Json,
  type OpenedClientSecret,
} from "tollgate/plugin";
import { GRANT_OPTIONS, LABELS_OPTION } from "./grant-options.ts";

function identifyClient(
  x: RequestHead,
  who: Identity | undefined,
  opened: OpenedClientSecret | undefined,
): void {
  if (!who)
    return fail("unauthenticated", "Invalid API key. The key is unknown, expired, or revoked.", {
      code: "invalid_api_key",
    });
  if (!opened) return x.identify(who);
  if (opened.privacy !== "off") x.requirePrivacy(opened.privacy);
  x.identify({ ...who, clientSecret: opened.clientSecret });
}

export default defineMiddleware({
  api: 1,
  name: "auth",
  summary: "Authenticate API keys and apply their permissions",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      anonymous: {
        type: "boolean",
        default: false,
        description:
          "Whether requests without a key are accepted. Requests with an invalid key are " +
          "always rejected",
      },
      keys: {
        type: "array",
        default: [],
        description:
          "Keys by hash, in addition to those in the store. `tollgate keys hash` prints " +
          "the hash of a key",
        items: {
          type: "object",
          additionalProperties: false,
          required: ["id", "digest"],
          properties: {
            id: { type: "string", minLength: 1, description: "ID of the key in the ledger" },
            digest: {
              type: "string",
              pattern: "^[0-9a-f]{64}$",
              "x-expects": "64 letters and digits, as `tollgate keys hash` prints them",
              description: "SHA-256 hash of the key, in hexadecimal",
            },
            name: { type: "string", description: "Display name" },
            ...GRANT_OPTIONS,
            expires: { type: "string", description: "Expiry date, such as 2027-01-31" },
            limits: { type: "array", items: LIMIT_SCHEMA, description: "Limits of the key" },
            labels: LABELS_OPTION,
          },
        },
      },
    },
  },
  *check({ keys }) {
    const seen = new Map<string, number>();
    for (const [i, key] of keys.entries()) {
      const twin = seen.get(key.digest);
      if (twin !== undefined)
        yield { path: `/keys/${i}/digest`, message: `duplicates the digest of keys[${twin}]` };
      seen.set(key.digest, i);
      if (key.expires !== undefined && Number.isNaN(Date.parse(key.expires)))
        yield {
          path: `/keys/${i}/expires`,
          message: "is not a valid date",
          hint: "write it as 2027-01-31",
        };
    }
  },
  setup({ anonymous, keys }, ctx) {
    const listed = keys.map(({ digest, expires, limits, ...who }) => ({
      digest: Buffer.from(digest, "hex"),
      expires: expires === undefined ? Infinity : Date.parse(expires),
      identity: {
        ...who,
        digest,
        limits: limits?.map((l) => parseScopedLimit(l, `key:${who.id}`)),
      } as Identity,
    }));
    /** All keys are compared, so that the duration does not disclose which key matches. */
    const inFile = (digest: Buffer): Identity | undefined => {
      let found: Identity | undefined;
      for (const key of listed)
        if (timingSafeEqual(key.digest, digest) && key.expires > Date.now()) found = key.identity;
      return found;
    };
    const find = (secret: string) => {
      const own =
        listed.length === 0 ? undefined : inFile(createHash("sha256").update(secret).digest());
      return own ?? ctx.keys.find(secret);
    };
    const findByDigest = (digest: string) =>
      inFile(Buffer.from(digest, "hex")) ?? ctx.keys.findByDigest(digest);
    const tokens = new AccessTokens(ctx);
    /** A client that retries a rejected token would not ask the person to sign in. */
    const admitSignedIn = async (x: RequestHead, token: string): Promise<void> => {
      try {
        const { key, session } = tokens.open(token);
        const found = ctx.keys.findByDigest(tokens.keyDigest(key));
        x.identify(tokens.check(session, found instanceof Promise ? await found : found));
      } catch (error) {
        if (getFault(error)?.kind === "unauthenticated")
          x.setResponseHeader("x-should-retry", "false");
        throw error;
      }
    };
    return {
      needsFirstKey: !anonymous && keys.length === 0,
      commands: {
        keys: {
          summary: "List the keys in gateway.yaml, without their hashes",
          role: "viewer",
          writes: false,
          run: async () =>
            keys.map(({ digest: _, expires, ...key }) => ({
              ...key,
              ...(expires === undefined ? {} : { expires: Date.parse(expires) }),
            })) as unknown as Json,
        },
      },
      admit(x, secret) {
        if (x.identity) return undefined;
        if (secret === undefined) {
          if (anonymous) return x.identify({ id: "anonymous" });
          return fail("unauthenticated", "Missing API key. Send one of Tollgate's keys.", {
            code: "missing_api_key",
          });
        }
        if (isAccessToken(secret)) return admitSignedIn(x, secret);
        const opened = openClientSecret(ctx, x, secret);
        // Most keys are cached, so that nothing has to be awaited.
        const who = opened ? findByDigest(opened.digest) : find(secret);
        return who instanceof Promise
          ? who.then((found) => identifyClient(x, found, opened))
          : identifyClient(x, who, opened);
      },
    };
  },
});
