// Requests of an OAuth client to an authorization server. Responses come from other parties, so each
// value is checked before it is used.
import { readBoundedBody } from "../../lib/net/bounded-body.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { ProviderClient } from "../call.ts";

const MAX_RESPONSE_BYTES = 256 * 1024;
const ERROR_CODE = /^\w{1,64}$/;

/** An error of an authorization server. Its message contains no token and no secret. */
export class OAuthError extends Error {
  /** Code of the server, such as `invalid_grant`, `request_failed`, or `invalid_response`. */
  readonly code: string;

  /** Creates an error. The message is for the log and for operators. */
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Request of an OAuth client. */
export interface OAuthRequest {
  /** HTTP method. Default: GET. */
  readonly method?: "POST";
  /** Headers of the request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of a POST request. */
  readonly body?: string;
  /** Maximum time until the end of the response, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Returns the JSON object of a response. Throws an `OAuthError` if the server denies the request,
 * or if the response is too large or is no JSON object.
 */
export async function requestOAuthJson(
  fetch: ProviderClient["fetch"],
  url: string,
  { timeoutMs, ...init }: OAuthRequest,
): Promise<JsonObject> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
  const { host } = new URL(url);
  const body = await readBoundedBody(response.body, MAX_RESPONSE_BYTES);
  if (!body) throw new OAuthError("invalid_response", `The response of ${host} is too large.`);
  const parsed = parseObject(body.toString("utf8"));
  if (!response.ok) {
    const { error } = parsed ?? {};
    const code = typeof error === "string" && ERROR_CODE.test(error) ? error : undefined;
    throw new OAuthError(
      code ?? "request_failed",
      `${host} responded with status ${response.status}${code === undefined ? "" : ` (${code})`}.`,
    );
  }
  if (parsed) return parsed;
  throw new OAuthError("invalid_response", `${host} did not respond with a JSON object.`);
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Metadata of an authorization server, of the configured issuer. */
export interface IssuerMetadata {
  /** The whole document. */
  readonly document: JsonObject;
  /**
   * Called for each endpoint that the client needs, when it needs it. Returns its URL. Undefined if
   * the document has none, or null. Throws if it is no HTTP URL, or unencrypted although the issuer
   * is not.
   */
  endpoint(name: string): string | undefined;
}

/**
 * Returns the metadata of an issuer, from the first of these URLs that has a document. Throws an
 * `OAuthError` if the document is about another issuer.
 */
export async function readIssuerMetadata(
  fetch: ProviderClient["fetch"],
  issuer: string,
  of: {
    /** URLs of the document, in the order in which they are tried. */
    readonly urls: readonly string[];
    /** Maximum time of each request, in milliseconds. */
    readonly timeoutMs: number;
  },
): Promise<IssuerMetadata> {
  const document = await readFirstDocument(fetch, of.urls, of.timeoutMs);
  const found = document["issuer"];
  if (found !== issuer)
    throw new OAuthError(
      "invalid_response",
      `The metadata is of the issuer ${JSON.stringify(found)?.slice(0, 200)}, not of ${issuer}.`,
    );
  const endpoint = (name: string): string | undefined => {
    const value = document[name];
    if (value === undefined || value === null) return undefined;
    if (!isHttpUrl(value) || (value.startsWith("http:") && !issuer.startsWith("http:")))
      throw new OAuthError("invalid_response", `The metadata has an invalid ${name}.`);
    return value;
  };
  return { document, endpoint };
}

/** Returns the first JSON object that one of the URLs has. Throws the error of the first one. */
export async function readFirstDocument(
  fetch: ProviderClient["fetch"],
  urls: readonly string[],
  timeoutMs: number,
): Promise<JsonObject> {
  let problem: unknown;
  const headers = { accept: "application/json" };
  for (const url of urls)
    try {
      return await requestOAuthJson(fetch, url, { headers, timeoutMs });
    } catch (error) {
      problem ??= error;
    }
  throw problem;
}

/** Whether a value is an absolute HTTP or HTTPS URL. */
export const isHttpUrl = (value: unknown): value is string =>
  typeof value === "string" && /^https?:\/\//.test(value) && URL.canParse(value);

/**
 * Returns the `Authorization` header of a client with a secret. Both are form-encoded first, as
 * RFC 6749, section 2.3.1, requires.
 */
export const basicAuthorization = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;
