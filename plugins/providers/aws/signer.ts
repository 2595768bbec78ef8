// Signature Version 4: a request is signed with a key that is derived for the day, the region and the service. Pure: the clock
// is the caller's.
import { createHash, createHmac } from "node:crypto";

/** What signs: a pair of keys, and the token of those that end. */
export interface SigningKeys {
  readonly id: string;
  readonly secret: string;
  readonly token?: string | undefined;
}

/** A request, and the service that it is signed for. */
export interface SigningRequest {
  readonly method: string;
  readonly url: URL;
  /** The body's media type, where there is a body. */
  readonly type: string | undefined;
  readonly body: Buffer | null;
  readonly region: string;
  readonly service: string;
  /** Unix milliseconds, as the service's clock has them. */
  readonly now: number;
}

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, data: string): Buffer =>
  createHmac("sha256", key).update(data).digest();

/** Everything but letters, digits and `-_.~`: the signature leaves no room for another spelling. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** The headers that sign it. */
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

/** As it stands on the wire, and each step encoded once more: a colon is `%3A` there and `%253A` here. */
const pathOf = ({ pathname }: URL): string => pathname.split("/").map(encoded).join("/");

function queryOf({ searchParams }: URL): string {
  const pairs = [...searchParams].map(([name, value]) => [encoded(name), encoded(value)] as const);
  return pairs
    .sort(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1))
    .map((pair) => pair.join("="))
    .join("&");
}
