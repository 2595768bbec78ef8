// Signs alerts by the Standard Webhooks specification, so that a receiver can verify their origin
// and age. https://www.standardwebhooks.com
import { createHmac } from "node:crypto";

const SECRET_PREFIX = "whsec_";
/** Bounds of the specification, in bytes. */
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;

/** Decodes a secret, or returns undefined if it is invalid. */
export function parseSecret(text: string): Buffer | undefined {
  if (!text.startsWith(SECRET_PREFIX)) return undefined;
  const base64 = text.slice(SECRET_PREFIX.length);
  const bytes = Buffer.from(base64, "base64");
  // Node skips invalid base64 characters, which would give a secret that differs from the
  // receiver's.
  const same = bytes.toString("base64").replace(/=+$/, "") === base64.replace(/=+$/, "");
  return same && bytes.length >= MIN_SECRET_BYTES && bytes.length <= MAX_SECRET_BYTES
    ? bytes
    : undefined;
}

/**
 * Returns the headers of one attempt. `now` is the time of the attempt in Unix milliseconds,
 * because receivers reject old timestamps.
 */
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
