// AWS Signature Version 4: signs a request with a key derived for the day, region, and service. The
// function is pure, and the caller provides the time. Other packages can import it as
// `tollgate-provider-aws/signer`.
import { createHash, createHmac } from "node:crypto";
import type { SignableRequest } from "tollgate/plugin";

/** A pair of access keys, and a session token if the keys are temporary. */
export interface SigningKeys {
  readonly id: string;
  readonly secret: string;
  readonly token?: string | undefined;
}

/** The service that verifies the signature, and the time of signing. */
export interface SigningScope {
  readonly region: string;
  /** Name of the service in its signatures, such as `bedrock`. */
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

/**
 * Returns the headers that sign a request: the date, the hash of the body, and the signature. The
 * signature encodes the path again, as every service except S3 requires. S3 also accepts a body
 * that is not signed, such as one that is created while it is sent.
 */
export function signRequest(
  keys: SigningKeys,
  request: Pick<SignableRequest, "method" | "url" | "headers" | "body">,
  { region, service, now }: SigningScope,
): Record<string, string> {
  const stamp = new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, "");
  const day = stamp.slice(0, 8);
  const isStorage = service === "s3";
  const hash = isStorage && request.body === null ? "UNSIGNED-PAYLOAD" : sha256(request.body ?? "");
  const type = request.headers["content-type"];
  const headers: Record<string, string> = {
    ...(type !== undefined && { "content-type": type }),
    host: request.url.host,
    "x-amz-content-sha256": hash,
    "x-amz-date": stamp,
    ...(keys.token !== undefined && { "x-amz-security-token": keys.token }),
  };
  const names = Object.keys(headers).sort();
  const scope = `${day}/${region}/${service}/aws4_request`;
  const canonical = [
    request.method,
    isStorage ? request.url.pathname : pathOf(request.url),
    queryOf(request.url),
    ...names.map((name) => `${name}:${headers[name]!.trim().replace(/\s+/g, " ")}`),
    "",
    names.join(";"),
    hash,
  ].join("\n");
  const stringToSign = ["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical)].join("\n");
  const key = [region, service, "aws4_request"].reduce(
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
 * Encodes each segment of the URL's path again: a colon is `%3A` in the URL and `%253A` in the
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
