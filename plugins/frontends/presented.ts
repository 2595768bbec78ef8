// Where clients may put their key. Headers are looked at in the order in which they are accepted.
import { fail, type HeadersIn } from "tollgate/plugin";

export type Scheme = "bearer" | "x-api-key";

/** The option of every frontend that lets an operator choose. */
export const accept = (...schemes: readonly Scheme[]) =>
  ({
    type: "array",
    minItems: 1,
    uniqueItems: true,
    items: { enum: ["bearer", "x-api-key"] },
    default: schemes,
    description:
      "Where clients may put their key, looked at in this order: bearer (Authorization: Bearer <key>), x-api-key",
  }) as const;

const WORDS: Readonly<Record<Scheme, string>> = {
  bearer: "Authorization: Bearer <key>",
  "x-api-key": "x-api-key: <key>",
};

/**
 * The key, or nothing when none was sent; a key in the wrong place is refused with the right one. Clients send one key in
 * two headers; two keys are two clients, and which one is asking cannot be said.
 */
export function presented(headers: HeadersIn, schemes: readonly Scheme[]): string | undefined {
  const [bearer, bare] = [READ.bearer(headers), READ["x-api-key"](headers)];
  if (bearer !== undefined && bare !== undefined && bearer !== bare)
    fail("unauthenticated", "Authorization and x-api-key bring two different keys. Send one.", {
      code: "ambiguous_credentials",
    });
  for (const scheme of schemes) {
    const secret = READ[scheme](headers);
    if (secret !== undefined) return secret;
  }
  if (headers.authorization === undefined && headers["x-api-key"] === undefined) return undefined;
  return fail(
    "unauthenticated",
    `Send the key as ${schemes.map((scheme) => WORDS[scheme]).join(" or ")}.`,
    { code: "invalid_api_key" },
  );
}

const READ: Readonly<Record<Scheme, (headers: HeadersIn) => string | undefined>> = {
  bearer: ({ authorization }) => /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1],
  "x-api-key": (headers) => {
    const value = headers["x-api-key"];
    const one = Array.isArray(value) ? value[0] : value;
    return one?.trim() || undefined;
  },
};
