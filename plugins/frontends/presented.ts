// Where clients may put their key. What is accepted is looked at in its order.
import { fail, type HeadersIn, type QueryIn } from "tollgate/plugin";

export type Scheme = "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "key";

/** The option of every frontend that lets an operator choose. `key` is a word of the address, and only where it is usual. */
export const accept = (...schemes: readonly Scheme[]) =>
  ({
    type: "array",
    minItems: 1,
    uniqueItems: true,
    items: { enum: Object.keys(WORDS) as Scheme[] },
    default: schemes,
    description:
      "Where clients may put their key, looked at in this order: bearer (Authorization: Bearer <key>), x-api-key, api-key, x-goog-api-key, key (?key=<key>)",
  }) as const;

const WORDS: Readonly<Record<Scheme, string>> = {
  bearer: "Authorization: Bearer <key>",
  "x-api-key": "x-api-key: <key>",
  "api-key": "api-key: <key>",
  "x-goog-api-key": "x-goog-api-key: <key>",
  key: "?key=<key>",
};

const NAMES: Readonly<Record<Scheme, string>> = {
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
export function presented(
  headers: HeadersIn,
  schemes: readonly Scheme[],
  query?: QueryIn,
): string | undefined {
  const [one, other] = different(headers, query);
  if (other !== undefined)
    fail(
      "unauthenticated",
      `${NAMES[one!]} and ${NAMES[other]} bring two different keys. Send one.`,
      {
        code: "ambiguous_credentials",
      },
    );
  for (const scheme of schemes) {
    const secret = READ[scheme](headers, query);
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
    `Send the key as ${schemes.map((scheme) => WORDS[scheme]).join(" or ")}.`,
    { code: "invalid_api_key" },
  );
}

/** Where a key is, and where another one is. */
function different(
  headers: HeadersIn,
  query: QueryIn | undefined,
): readonly [first: Scheme | undefined, other?: Scheme] {
  let first: Scheme | undefined;
  let key: string | undefined;
  for (const scheme of ALL) {
    const here = READ[scheme](headers, query);
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

const READ: Readonly<
  Record<Scheme, (headers: HeadersIn, query: QueryIn | undefined) => string | undefined>
> = {
  bearer: ({ authorization }) => /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1],
  "x-api-key": inHeader("x-api-key"),
  "api-key": inHeader("api-key"),
  "x-goog-api-key": inHeader("x-goog-api-key"),
  key: (_headers, query) => query?.get("key")?.trim() || undefined,
};

const ALL = Object.keys(READ) as Scheme[];
