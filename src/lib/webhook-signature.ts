// Signs webhooks by the Standard Webhooks specification, so that a receiver can verify their origin
// and age. https://www.standardwebhooks.com
import { createHmac } from "node:crypto";

const SECRET_PREFIX = "whsec_";
/** Bounds of the specification, in bytes. */
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;

/** Instruction for a user whose secret is invalid. */
export const WEBHOOK_SECRET_HINT =
  'write whsec_ and 24 to 64 bytes in base64: "whsec_$(openssl rand -base64 32)"';

/** Decodes a secret, or returns undefined if it is invalid. */
export function parseWebhookSecret(text: string): Buffer | undefined {
  if (!text.startsWith(SECRET_PREFIX)) return undefined;
  const base64 = text.slice(SECRET_PREFIX.length);
  const bytes = Buffer.from(base64, "base64");
  // Node ignores invalid base64 characters. The decoded secret would then differ from the
  // receiver's.
  const same = bytes.toString("base64").replace(/=+$/, "") === base64.replace(/=+$/, "");
  return same && bytes.length >= MIN_SECRET_BYTES && bytes.length <= MAX_SECRET_BYTES
    ? bytes
    : undefined;
}

/**
 * Returns the headers of one attempt: its ID, its time, and a signature of both and the body. `now` is the time of the attempt in Unix milliseconds,
 * because receivers reject old timestamps.
 */
export function createWebhookHeaders(
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
