// Client secrets: short-lived secrets that a frontend creates for a client, and that a browser
// presents in place of the client's key. A client secret is encrypted and contains the hash of the
// key. It is therefore valid at all gateways on the store, and only for as long as the key is.
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { fail } from "../model/error.ts";
import { decrypt, encrypt } from "../lib/encryption.ts";
import type { Privacy } from "../model/facts.ts";
import type { Json } from "../model/values.ts";
import type { Context } from "./context.ts";
import type { RequestHead } from "./exchange.ts";
import type { ClientSecret } from "./identity.ts";

/** A client secret that was decrypted, with the key that it stands for. */
export interface OpenedClientSecret {
  /** Value for `clientSecret` of the identity. */
  readonly clientSecret: ClientSecret;
  /** SHA-256 of the key, in hexadecimal. */
  readonly digest: string;
  /** Privacy level of the request that created the secret. */
  readonly privacy: Privacy;
}

/** Prefix of client secrets. OpenAI's SDKs accept a secret in a browser only with this prefix. */
const CLIENT_SECRET_PREFIX = "ek_";

/**
 * Maximum length of a client secret in characters. A browser sends it in a header, and all headers
 * of a request must fit into 16 KiB.
 */
const MAX_LENGTH = 8_192;
/** Maximum size of the decrypted content in bytes. */
const MAX_CONTENT_BYTES = 262_144;

const secretKey = (ctx: Pick<Context, "deriveSecret">): Uint8Array =>
  ctx.deriveSecret("client secrets");

/**
 * Creates a client secret for the key of this request. Only routes of the same frontend with
 * `acceptsClientSecrets` accept it. Throws the fault for the client if the client was not identified
 * by an API key, or if `data` is too large.
 *
 *     const value = createClientSecret(ctx, x, { expiresAt: Date.now() + 600_000, data: { model } });
 */
export function createClientSecret(
  ctx: Pick<Context, "deriveSecret">,
  x: Pick<RequestHead, "identity" | "frontend" | "privacy">,
  { expiresAt, data }: Pick<ClientSecret, "expiresAt" | "data">,
): string {
  const digest = x.identity?.digest;
  if (digest === undefined || digest === null)
    return fail("forbidden", "A client secret can be created only with an API key.", {
      code: "client_secret_needs_key",
    });
  const content = Buffer.from(JSON.stringify([digest, x.frontend, expiresAt, x.privacy, data]));
  // Content that could not be decrypted is not compressed, which would take long.
  const secret = content.length > MAX_CONTENT_BYTES ? undefined : encode(secretKey(ctx), content);
  if (secret === undefined || secret.length > MAX_LENGTH)
    return fail(
      "too_large",
      "The settings are too large for a client secret, which browsers send in a header. Send them when the connection is open.",
      { code: "client_secret_too_large" },
    );
  return secret;
}

const encode = (key: Uint8Array, content: Buffer): string =>
  CLIENT_SECRET_PREFIX + encrypt(key, deflateRawSync(content)).toString("base64url");

/**
 * Decrypts a client secret. Returns undefined if the text is no client secret of this store. Throws
 * the fault for the client if another frontend created the secret.
 *
 * An `admit` hook finds the key with `ctx.keys.findByDigest` and sets `clientSecret` of the
 * identity. The host then checks the expiry and the route.
 */
export function openClientSecret(
  ctx: Pick<Context, "deriveSecret">,
  x: Pick<RequestHead, "frontend">,
  secret: string,
): OpenedClientSecret | undefined {
  if (!secret.startsWith(CLIENT_SECRET_PREFIX) || secret.length > MAX_LENGTH) return undefined;
  const content = decode(secretKey(ctx), secret.slice(CLIENT_SECRET_PREFIX.length));
  if (content === undefined) return undefined;
  const [digest, frontend, expiresAt, privacy, data] = content;
  if (frontend !== x.frontend)
    return fail("unauthenticated", `This client secret is accepted only by ${frontend}.`, {
      code: "client_secret_not_accepted",
    });
  return { clientSecret: { frontend, expiresAt, data }, digest, privacy };
}

type Content = [digest: string, frontend: string, expiresAt: number, privacy: Privacy, data: Json];

function decode(key: Uint8Array, text: string): Content | undefined {
  const packed = decrypt(key, Buffer.from(text, "base64url"));
  if (packed === undefined) return undefined;
  try {
    const content = inflateRawSync(packed, { maxOutputLength: MAX_CONTENT_BYTES });
    return JSON.parse(content.toString()) as Content;
  } catch {
    return undefined;
  }
}
