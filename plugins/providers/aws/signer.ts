// Signature Version 4: signs a request with a key derived for the day, region, and service. The
// function is pure: the caller provides the time.
import { createHash, createHmac } from "node:crypto";

/** A pair of access keys, and a session token if the keys are temporary. */
export interface SigningKeys {
  readonly id: string;
  readonly secret: string;
  readonly token?: string | undefined;
}

/** A request to sign, and the service to sign it for. */
export interface SigningRequest {
  readonly method: string;
  readonly url: URL;
  /** Content type of the body, if there is a body. */
  readonly type: string | undefined;
  readonly body: Buffer | null;
  readonly region: string;
  readonly service: string;
  /** Time of the service's clock in Unix milliseconds. */
  readonly now: number;
}

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, data: string): Buffer =>
  createHmac("sha256", key).update(data).digest();

/** Percent-encodes everything except letters, digits, and `-_.~`, as the signature requires. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Returns the headers with the signature. */
export function signRequest(keys: SigningKeys, of: SigningRequest): Record<string, string> {
  const stamp = new Date(of.now).toISOString().replace(/[-:]|\.\d{3}/g, "");
  const day = stamp.slice(0, 8);
  const hash = sha256(of.body ?? "");
  const headers: Record<string, string> = {
    ...(of.type !== undefined && { "content-type": of.type }),
    host: of.url.host,
    "x-amz-content-sha256": hash,
    "x-amz-date": stamp,
    ...(keys.token !== undefined && { "x-amz-security-token": keys.token }),
  };
  const names = Object.keys(headers).sort();
  const scope = `${day}/${of.region}/${of.service}/aws4_request`;
  const canonical = [
    of.method,
    pathOf(of.url),
    queryOf(of.url),
    ...names.map((name) => `${name}:${headers[name]!.trim().replace(/\s+/g, " ")}`),
    "",
    names.join(";"),
    hash,
  ].join("\n");
  const stringToSign = ["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical)].join("\n");
  const key = [of.region, of.service, "aws4_request"].reduce(
    (key, part) => hmac(key, part),
    hmac(`AWS4${keys.secret}`, day),
  );
  const signature = hmac(key, stringToSign).toString("hex");
  const { host: _host, "content-type": _type, ...own } = headers;
  return {
    ...own,
    authorization: `AWS4-HMAC-SHA256 Credential=${keys.id}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`,
  };
}

/**
 * Encodes each segment of the URL's path once more: a colon is `%3A` in the URL and `%253A` in the
 * signature.
 */
const pathOf = ({ pathname }: URL): string => pathname.split("/").map(encoded).join("/");

function queryOf({ searchParams }: URL): string {
  const pairs = [...searchParams].map(([name, value]) => [encoded(name), encoded(value)] as const);
  return pairs
    .sort(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1))
    .map((pair) => pair.join("="))
    .join("&");
}
