// The client's own credential for a provider, such as the token of a subscription. It is taken from
// the request when the request is admitted, and sent in one call to the one provider that is
// configured for it. No other code can read it: no plugin, log, trace, ledger row, or retry.
import type { IncomingMessage } from "node:http";
import { encodingsOf } from "../../lib/log/secret-mask.ts";
import { fail } from "../../model/error.ts";
import { CLIENT_CREDENTIAL } from "../../model/usage.ts";
import type { HeadersOut } from "../../model/values.ts";
import { isAccessToken } from "../../plugin/sign-in/access-token.ts";
import type { HostCandidate, Credential, MountedEndpoint } from "./mounted.ts";

/** Header of the token of a subscription, which providers accept next to their header for keys. */
const TOKEN_HEADER = "authorization";
/** Headers in which clients send their credential for a provider. */
const CREDENTIAL_HEADERS: readonly string[] = [TOKEN_HEADER, "x-api-key"];
/** Headers that name the account of a token. They are sent only next to the token. */
const ACCOUNT_HEADERS: readonly string[] = ["chatgpt-account-id"];
/** Prefixes of the gateway's own secrets: keys, refresh tokens, and client secrets. */
const GATEWAY_SECRET = /^(?:tgr?|ek)_/;
/** Separates the scheme, the token, and the values of a header that was sent twice. */
const VALUE_SEPARATOR = /[\s,]+/;
const MASKED = "[secret]";

/** Whether calls with this credential are paid by the client. */
export const isClientCredential = (credential: Credential): boolean =>
  credential.clientAccounts !== undefined;

/** Whether the client pays the calls to this candidate. */
export const isPaidByClient = ({ credential }: Pick<HostCandidate, "credential">): boolean =>
  credential === CLIENT_CREDENTIAL;

export class ClientCredential {
  readonly #headers: HeadersOut;
  #isSent = false;
  /** Texts in which a provider can quote the credential, the longest first. */
  #quotable: readonly string[] | undefined;

  private constructor(headers: HeadersOut) {
    this.#headers = headers;
  }

  /**
   * Takes the client's own credential out of a request, so that the request no longer contains it.
   * `key`: the credential that identified the client to the gateway. Returns undefined if the
   * request contains no other credential.
   */
  static take(
    req: Pick<IncomingMessage, "headers" | "rawHeaders">,
    key: string | undefined,
  ): ClientCredential | undefined {
    const headers: Record<string, string> = {};
    const isOwn = (value: string) =>
      (key === undefined || !value.includes(key)) &&
      !value.split(VALUE_SEPARATOR).some(isGatewaySecret);
    for (const name of CREDENTIAL_HEADERS) {
      const value = req.headers[name];
      if (typeof value === "string" && value.trim() !== "" && isOwn(value)) headers[name] = value;
    }
    if (Object.keys(headers).length === 0) return undefined;
    for (const name of ACCOUNT_HEADERS) {
      const value = req.headers[name];
      if (typeof value === "string") headers[name] = value;
    }
    for (const name in headers) removeHeader(req, name);
    return new ClientCredential(headers);
  }

  /** Whether the credential was sent. It is not sent a second time. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** Whether the client sent a credential that the endpoint can be called with. */
  fits(endpoint: MountedEndpoint): boolean {
    return this.#headerFor(endpoint) !== undefined;
  }

  /**
   * Returns the headers for the call, with exactly one credential: the client may have sent a key
   * of another service in the other header. It can be called once.
   */
  send(endpoint: MountedEndpoint): HeadersOut {
    if (this.#isSent) fail("internal", "A client's credential can be sent only once.");
    const name =
      this.#headerFor(endpoint) ?? fail("internal", "The client sent no credential that fits.");
    this.#isSent = true;
    const headers: Record<string, string | undefined> = { [name]: this.#headers[name] };
    if (name === TOKEN_HEADER)
      for (const account of ACCOUNT_HEADERS) headers[account] = this.#headers[account];
    return headers;
  }

  /**
   * Returns the header of the credential for an endpoint: the header of tokens, or else the
   * endpoint's own header. A client that signed in sends a token, and a key next to it often belongs
   * to another service. Returns undefined if the client sent neither.
   */
  #headerFor({ transport }: MountedEndpoint): string | undefined {
    const auth = transport?.definition.auth;
    const own = typeof auth === "object" && "header" in auth ? auth.header.toLowerCase() : "";
    return [TOKEN_HEADER, own].find(
      (name) => CREDENTIAL_HEADERS.includes(name) && this.#headers[name] !== undefined,
    );
  }

  /** Replaces the credential, in each of its encodings, in a text of the provider. */
  mask(text: string): string {
    this.#quotable ??= CREDENTIAL_HEADERS.flatMap((name) => quotableTexts(this.#headers[name]));
    let masked = text;
    for (const quoted of this.#quotable) masked = masked.replaceAll(quoted, MASKED);
    return masked;
  }
}

/** Returns the texts in which the token of a header can be quoted, the longest first. */
function quotableTexts(header = ""): readonly string[] {
  const token = header.slice(header.trimEnd().lastIndexOf(" ") + 1).trim();
  if (token === "") return [];
  return [...new Set([token, ...encodingsOf(token)])].toSorted((a, b) => b.length - a.length);
}

/** Whether a token was issued by a gateway, even by another one. It is never sent to a provider. */
const isGatewaySecret = (token: string): boolean =>
  GATEWAY_SECRET.test(token) || isAccessToken(token);

function removeHeader(req: Pick<IncomingMessage, "headers" | "rawHeaders">, name: string): void {
  delete req.headers[name];
  const { rawHeaders } = req;
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2)
    if (rawHeaders[i]!.toLowerCase() === name) rawHeaders.splice(i, 2);
}
