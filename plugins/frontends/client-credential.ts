// Reads the key that a client sent. Accepted schemes are tried in their configured order.
import { fail, type HeadersIn, type QueryIn } from "tollgate/plugin";

export type Scheme =
  | "bearer"
  | "x-api-key"
  | "api-key"
  | "x-goog-api-key"
  | "x-tollgate-key"
  | "key"
  | "subprotocol";

/** Header of the gateway's key next to the client's own credential for a provider. */
const OWN_HEADER = "x-tollgate-key";

/**
 * Builds the option with which an operator chooses the schemes of a frontend. `key` is a query
 * parameter, and is offered only for APIs in which it is usual.
 */
export const acceptOption = (...schemes: readonly Scheme[]) =>
  ({
    type: "array",
    minItems: 1,
    uniqueItems: true,
    items: { enum: Object.keys(SCHEME_DESCRIPTIONS) as Scheme[] },
    default: [...schemes, OWN_HEADER] as readonly Scheme[],
    description:
      "Places where clients may put their key, in the order in which they are read. bearer: Authorization: Bearer <key>. key: ?key=<key>. subprotocol: for WebSockets of browsers. x-tollgate-key takes precedence over the others, which may then contain the client's own credential for a provider",
  }) as const;

const SCHEME_DESCRIPTIONS: Readonly<Record<Scheme, string>> = {
  bearer: "Authorization: Bearer <key>",
  "x-api-key": "x-api-key: <key>",
  "api-key": "api-key: <key>",
  "x-goog-api-key": "x-goog-api-key: <key>",
  "x-tollgate-key": "x-tollgate-key: <key>",
  key: "?key=<key>",
  subprotocol: "Sec-WebSocket-Protocol: openai-insecure-api-key.<key>",
};

const SCHEME_NAMES: Readonly<Record<Scheme, string>> = {
  bearer: "Authorization",
  "x-api-key": "x-api-key",
  "api-key": "api-key",
  "x-goog-api-key": "x-goog-api-key",
  "x-tollgate-key": "x-tollgate-key",
  key: "?key=",
  subprotocol: "Sec-WebSocket-Protocol",
};

/**
 * Returns the key, or undefined if the client sent none. Rejects a key in a place that is not
 * accepted, with the accepted places in the message. Clients may send the same key in two places.
 * Two different keys are rejected, because it is unclear which client sent the request.
 *
 * Exception: Claude Code fills `Authorization` and `x-api-key` from two variables, and one of them
 * may contain a credential for another service. If only one credential has the form of a key or
 * token of this gateway, that credential is used.
 */
export function extractCredential(
  headers: HeadersIn,
  schemes: readonly Scheme[],
  query?: QueryIn,
): string | undefined {
  const own = schemes.includes(OWN_HEADER) ? READERS[OWN_HEADER](headers, query) : undefined;
  if (own !== undefined) return own;
  const key = findOnlyKey(headers, query);
  if (key !== undefined)
    for (const scheme of schemes) if (READERS[scheme](headers, query) === key) return key;
  if (
    key === undefined &&
    headers.authorization === undefined &&
    headers["x-api-key"] === undefined
  )
    return undefined;
  return fail("unauthenticated", `Send the key as ${listSchemes(schemes)}.`, {
    code: "invalid_api_key",
  });
}

/** Lists the places. Clients need `x-tollgate-key` only next to another credential. */
const listSchemes = (schemes: readonly Scheme[]): string => {
  const usual = schemes.filter((scheme) => scheme !== OWN_HEADER);
  return (usual.length > 0 ? usual : schemes)
    .map((scheme) => SCHEME_DESCRIPTIONS[scheme])
    .join(" or ");
};

/** Returns the key that the request contains. Throws if it contains two different keys. */
function findOnlyKey(headers: HeadersIn, query: QueryIn | undefined): string | undefined {
  let place: Scheme | undefined;
  let key: string | undefined;
  for (const scheme of ALL_SCHEMES) {
    const here = READERS[scheme](headers, query);
    if (here === undefined || here === key) continue;
    if (place !== undefined) {
      const isOwn = isOwnForm(here);
      if (place !== "bearer" || scheme !== "x-api-key" || isOwn === isOwnForm(key!))
        fail(
          "unauthenticated",
          `${SCHEME_NAMES[place]} and ${SCHEME_NAMES[scheme]} contain different keys. Send only one key.`,
          { code: "ambiguous_credentials" },
        );
      if (!isOwn) continue;
    }
    [place, key] = [scheme, here];
  }
  return key;
}

/** Whether the text has the form of a key of this gateway, or of a JSON Web Token. */
const isOwnForm = (text: string): boolean => /^(?:tg_|eyJ[\w-]*\.[\w-]+\.[\w-]*$)/.test(text);

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
  "x-tollgate-key": inHeader(OWN_HEADER),
  key: (_headers, query) => query?.get("key")?.trim() || undefined,
  // The name that OpenAI's SDKs use in browsers.
  subprotocol: (headers) =>
    /(?:^|,)\s*openai-insecure-api-key\.([^\s,]+)/.exec(
      headers["sec-websocket-protocol"] ?? "",
    )?.[1],
};

const ALL_SCHEMES = (Object.keys(READERS) as Scheme[]).filter((scheme) => scheme !== OWN_HEADER);
