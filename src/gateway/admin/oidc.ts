// Signing in with the operators' identity provider: OpenID Connect's code flow with PKCE, state and nonce. All three are made of one
// random word that only the browser keeps, in a cookie of its own, so that however many begin nothing is kept here.
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AdminConfig, OidcConfig } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import { queryTextOf } from "../../lib/query-secrets.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { ProviderAccess } from "../../plugin/call.ts";
import type { Principal } from "../control/giver.ts";
import { byIssuer } from "./holders.ts";
import { OidcProvider } from "./oidc-provider.ts";
import { OIDC } from "./paths.ts";

export const CALLBACK = `${OIDC}/callback`;
const WORD = /^[\w-]{43}$/;
/** In which a person signs in there. */
const MAX_AGE_S = 600;
const LONGEST = 256;
const LONGEST_CODE = 4_096;

export interface OidcOf {
  /** Of the current config. */
  readonly admin: () => AdminConfig | undefined;
  readonly fetch: (config: OidcConfig) => ProviderAccess["fetch"];
  readonly log: Pick<Log, "warn">;
}

const part = (of: "state" | "nonce" | "verifier", word: string): string =>
  createHash("sha256").update(`${of} ${word}`).digest("base64url");

export class Oidc {
  readonly #of: OidcOf;
  #provider: OidcProvider | undefined;

  constructor(of: OidcOf) {
    this.#of = of;
  }

  /** Where a browser goes to sign in, and the cookie that it comes back with. */
  async begin(
    req: IncomingMessage,
    secure: boolean,
  ): Promise<{ location: string; cookie?: string }> {
    const provider = this.#current();
    const { callback, clientId, scopes } = provider.config;
    const own = new URL(callback);
    // A cookie is one name's: what comes by another name begins again under this one.
    if (req.headers.host?.toLowerCase() !== own.host) return { location: `${own.origin}${OIDC}` };
    const word = randomBytes(32).toString("base64url");
    const to = new URL(await this.#asked(() => provider.authorization()));
    const challenge = createHash("sha256").update(part("verifier", word)).digest("base64url");
    for (const [name, value] of Object.entries({
      response_type: "code",
      client_id: clientId,
      redirect_uri: callback,
      scope: scopes.join(" "),
      state: part("state", word),
      nonce: part("nonce", word),
      code_challenge: challenge,
      code_challenge_method: "S256",
    }))
      to.searchParams.set(name, value);
    return { location: to.href, cookie: cookieOf(word, secure) };
  }

  /** Whose browser has come back. */
  async finish(req: IncomingMessage, secure: boolean): Promise<Principal> {
    const provider = this.#current();
    const said = new URLSearchParams(queryTextOf(req));
    const word = wordIn(req, secure);
    const [code = "", state, iss] = ["code", "state", "iss"].map(
      (name) => said.get(name) ?? undefined,
    );
    if (word === undefined || state !== part("state", word))
      return refuse("This sign-in was not begun here, or its ten minutes are over. Begin again.");
    if (iss !== undefined && iss !== provider.config.issuer)
      return refuse("Another identity provider has answered.");
    if (said.has("error") || code === "" || code.length > LONGEST_CODE)
      return refuse("The identity provider has not let you in.");
    const claims = await this.#asked(() =>
      provider.claims(code, part("verifier", word), part("nonce", word)),
    );
    return holderOf(claims, provider.config);
  }

  /** Whether gateway.yaml names one. */
  get offered(): boolean {
    return this.#of.admin()?.oidc !== undefined;
  }

  #current(): OidcProvider {
    const config =
      this.#of.admin()?.oidc ??
      fail("not_found", "gateway.yaml names no identity provider under admin.oidc.", {
        code: "no_oidc",
      });
    // A reload brings another object.
    if (this.#provider?.config !== config)
      this.#provider = new OidcProvider(config, this.#of.fetch(config));
    return this.#provider;
  }

  /** What is wrong there is for the log: a person learns that it was. */
  async #asked<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#of.log.warn({ err: error }, "a sign-in with the identity provider failed");
      const refused = faultOf(error) === undefined;
      return refused
        ? refuse("The identity provider's answer could not be used. The log says why.")
        : fail("upstream", "The identity provider is not reached.", { code: "oidc_unreachable" });
    }
  }
}

const refuse = (why: string): never => fail("unauthenticated", why, { code: "oidc_refused" });

type IdClaims = Readonly<Record<string, unknown>>;

/** A claim of the ID token. An email address that the provider has not verified is treated as absent: any person may enter any. */
function claimOf(claims: IdClaims, name: string): unknown {
  if (name !== "email") return claims[name];
  const verified = claims["email_verified"];
  return verified === true || verified === "true" ? claims["email"] : undefined;
}

/** The principal of an ID token. Its role is the first one in the file's order whose group the token contains. */
export function holderOf(
  claims: IdClaims,
  { issuer, roles, groups: claim, name }: OidcConfig,
): Principal {
  const subject = claims["sub"];
  const called = claimOf(claims, name);
  const text = (value: unknown): value is string =>
    typeof value === "string" && value.length <= LONGEST && /^[\x21-\x7e]+$/.test(value);
  if (!text(subject)) return refuse("Your subject there cannot be used here.");
  const said = [claimOf(claims, claim)].flat();
  const role = roles.find(({ group }) => said.includes(group));
  if (!role)
    return fail("forbidden", "None of your groups may do anything here.", { code: "no_role" });
  return {
    name: `admin:oidc:${text(called) ? called : subject}`,
    role: role.role,
    within: role.account,
    by: byIssuer(issuer, subject),
    group: role.group,
  };
}

const nameOf = (secure: boolean): string => (secure ? "__Host-tollgate-oidc" : "tollgate-oidc");

/** Lax: the browser brings it when the provider's page sends it back. */
export const cookieOf = (word: string | undefined, secure: boolean): string =>
  [
    `${nameOf(secure)}=${word ?? ""}`,
    "Path=/",
    "HttpOnly",
    "SameSite=Lax",
    `Max-Age=${word === undefined ? 0 : MAX_AGE_S}`,
    ...(secure ? ["Secure"] : []),
  ].join("; ");

function wordIn(req: IncomingMessage, secure: boolean): string | undefined {
  const name = `${nameOf(secure)}=`;
  const found = (req.headers.cookie ?? "")
    .split(";", 50)
    .map((each) => each.trim())
    .filter((each) => each.startsWith(name));
  const word = found.length === 1 ? found[0]!.slice(name.length) : "";
  return WORD.test(word) ? word : undefined;
}
