// Standard Webhooks: what a receiver needs to know that an alert is ours, and new. https://www.standardwebhooks.com
import { createHmac } from "node:crypto";

const SECRET_PREFIX = "whsec_";
/** In bytes: the specification's bounds. */
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;

/** Undefined: it is no such secret. */
export function parseSecret(text: string): Buffer | undefined {
  if (!text.startsWith(SECRET_PREFIX)) return undefined;
  const base64 = text.slice(SECRET_PREFIX.length);
  const bytes = Buffer.from(base64, "base64");
  // What is no base64 is passed over when it is read, and would make another secret than the receiver's.
  const same = bytes.toString("base64").replace(/=+$/, "") === base64.replace(/=+$/, "");
  return same && bytes.length >= MIN_SECRET_BYTES && bytes.length <= MAX_SECRET_BYTES
    ? bytes
    : undefined;
}

/** `now`: Unix milliseconds, of this attempt: a receiver refuses what is old. */
export function signatureHeaders(
  id: string,
  body: string,
  secret: Buffer | undefined,
  now: number,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1_000));
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
  if (!secret) return headers;
  const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`);
  return { ...headers, "webhook-signature": `v1,${signature.digest("base64")}` };
}
