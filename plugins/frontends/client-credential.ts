// Where clients may put their key. What is accepted is looked at in its order.
import { fail, type HeadersIn, type QueryIn } from "tollgate/plugin";

export type Scheme = "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "key";

/** The option of every frontend that lets an operator choose. `key` is a word of the address, and only where it is usual. */
export const acceptOption = (...schemes: readonly Scheme[]) =>
  ({
    type: "array",
    minItems: 1,
    uniqueItems: true,
    items: { enum: Object.keys(SCHEME_DESCRIPTIONS) as Scheme[] },
    default: schemes,
    description:
      "Where clients may put their key, looked at in this order: bearer (Authorization: Bearer <key>), x-api-key, api-key, x-goog-api-key, key (?key=<key>)",
  }) as const;

const SCHEME_DESCRIPTIONS: Readonly<Record<Scheme, string>> = {
  bearer: "Authorization: Bearer <key>",
  "x-api-key": "x-api-key: <key>",
  "api-key": "api-key: <key>",
  "x-goog-api-key": "x-goog-api-key: <key>",
  key: "?key=<key>",
};

const SCHEME_NAMES: Readonly<Record<Scheme, string>> = {
  bearer: "Authorization",
  "x-api-key": "x-api-key",
  "api-key": "api-key",
  "x-goog-api-key": "x-goog-api-key",
  key: "?key=",
};

/**
 * The key, or nothing when none was sent; a key in the wrong place is refused with the right one. Clients send one key in
 * two headers; two keys are two clients, and which one is asking cannot be said.
 */
export function extractCredential(
  headers: HeadersIn,
  schemes: readonly Scheme[],
  query?: QueryIn,
): string | undefined {
  const [one, other] = explainWrongPlace(headers, query);
  if (other !== undefined)
    fail(
      "unauthenticated",
      `${SCHEME_NAMES[one!]} and ${SCHEME_NAMES[other]} bring two different keys. Send one.`,
      {
        code: "ambiguous_credentials",
      },
    );
  for (const scheme of schemes) {
    const secret = READERS[scheme](headers, query);
    if (secret !== undefined) return secret;
  }
  if (
    one === undefined &&
    headers.authorization === undefined &&
    headers["x-api-key"] === undefined
  )
    return undefined;
  return fail(
    "unauthenticated",
    `Send the key as ${schemes.map((scheme) => SCHEME_DESCRIPTIONS[scheme]).join(" or ")}.`,
    { code: "invalid_api_key" },
  );
}

/** Where a key is, and where another one is. */
function explainWrongPlace(
  headers: HeadersIn,
  query: QueryIn | undefined,
): readonly [first: Scheme | undefined, other?: Scheme] {
  let first: Scheme | undefined;
  let key: string | undefined;
  for (const scheme of ALL_SCHEMES) {
    const here = READERS[scheme](headers, query);
    if (here === undefined) continue;
    if (first === undefined) [first, key] = [scheme, here];
    else if (here !== key) return [first, scheme];
  }
  return [first];
}

const inHeader =
  (name: string) =>
  (headers: HeadersIn): string | undefined => {
    const value = headers[name];
    const one = Array.isArray(value) ? value[0] : value;
    return one?.trim() || undefined;
  };

const READERS: Readonly<
  Record<Scheme, (headers: HeadersIn, query: QueryIn | undefined) => string | undefined>
> = {
  bearer: ({ authorization }) => /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1],
  "x-api-key": inHeader("x-api-key"),
  "api-key": inHeader("api-key"),
  "x-goog-api-key": inHeader("x-goog-api-key"),
  key: (_headers, query) => query?.get("key")?.trim() || undefined,
};

const ALL_SCHEMES = Object.keys(READERS) as Scheme[];
