// A real identity provider, and a browser that is redirected to it and back. A test controls its
// users, its signing keys, and its token endpoint.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK } from "jose";
import { freePort } from "../../kit/process/ports.ts";

export const SECRET = "canary-oidc-5b1f-client-secret";
interface Person {
  readonly groups?: string[];
  readonly email: string;
  readonly email_verified: boolean;
}
const PEOPLE: Readonly<Record<string, Person>> = {
  ann: { groups: ["staff", "platform"], email: "ann@example.com", email_verified: true },
  bob: { groups: ["research"], email: "bob@example.com", email_verified: true },
  eve: { groups: ["visitors"], email: "eve@example.com", email_verified: true },
  kim: { email: "kim@example.com", email_verified: true },
  /**
   * Limited to an account, with the address of another user, which the provider has verified for
   * both.
   */
  twin: { groups: ["research"], email: "ann@example.com", email_verified: true },
  /** With an unverified address. */
  fay: { groups: ["research"], email: "ann@example.com", email_verified: false },
};

/** A minimal browser: cookies by host, and explicit redirects. */
export class Browser {
  readonly jar = new Map<string, Map<string, string>>();

  /** `accept`: media types that the browser accepts. */
  async go(
    to: string,
    form?: Record<string, string>,
    accept = "*/*",
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const { host } = new URL(to);
    const cookies = this.jar.get(host) ?? new Map<string, string>();
    this.jar.set(host, cookies);
    const res = await fetch(to, {
      redirect: "manual",
      method: form ? "POST" : "GET",
      headers: {
        accept,
        ...headers,
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      },
      ...(form && { body: new URLSearchParams(form) }),
    });
    for (const set of res.headers.getSetCookie()) {
      const [pair = ""] = set.split(";");
      const at = pair.indexOf("=");
      if (/max-age=0\b/i.test(set)) cookies.delete(pair.slice(0, at));
      else cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return res;
  }

  /** Follows redirects up to a URL with one of these prefixes, which is not requested. */
  async follow(to: string, ends: string | readonly string[]): Promise<string> {
    for (let i = 0; i < 12; i++) {
      const res = await this.go(to);
      const next = res.headers.get("location");
      if (next === null) throw new Error(`${to} answers ${res.status}: ${await res.text()}`);
      to = new URL(next, to).href;
      if ([ends].flat().some((end) => to.startsWith(end))) return to;
    }
    throw new Error("It goes on and on.");
  }
}

/** Its signing keys. */
export interface SigningKey {
  readonly kid: string;
  readonly key: CryptoKey;
  readonly jwk: JWK;
}
export async function signingKey(kid: string): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid, use: "sig", alg: "RS256" };
  return { kid, key: privateKey, jwk };
}

/** A provider's state of sessions, users, and codes. It is kept when the signing keys change. */
function memory() {
  const kept = new Map<string, Record<string, unknown>>();
  return class {
    readonly #model: string;
    constructor(model: string) {
      this.#model = model;
    }
    async upsert(id: string, payload: Record<string, unknown>) {
      kept.set(`${this.#model} ${id}`, payload);
    }
    async find(id: string) {
      return kept.get(`${this.#model} ${id}`);
    }
    async findByUid(uid: string) {
      return [...kept.values()].find((each) => each["uid"] === uid);
    }
    async consume(id: string) {
      kept.get(`${this.#model} ${id}`)!["consumed"] = true;
    }
    async destroy(id: string) {
      kept.delete(`${this.#model} ${id}`);
    }
    async revokeByGrantId(grant: string) {
      for (const [name, each] of kept) if (each["grantId"] === grant) kept.delete(name);
    }
  };
}

/** Identity provider whose users and keys a test controls. */
export interface IdentityProvider extends AsyncDisposable {
  readonly issuer: string;
  /** Users who were removed. The provider refreshes none of their tokens. */
  readonly removed: Set<string>;
  /** Claims that replace those of a user. */
  readonly claims: Map<string, Record<string, unknown>>;
  /** Requests to the token endpoint, by grant type. */
  readonly tokenRequests: string[];
  /** Signs with the first of these keys, and publishes exactly them. */
  signWith(...keys: readonly SigningKey[]): void;
  /** Replaces its token endpoint. Undefined: it responds itself. */
  forge(make: (() => Promise<string>) | undefined): void;
  /** Status with which its token endpoint fails. Undefined: it responds itself. */
  fail(status: number | undefined): void;
  /** Signs a browser in, from an authorization URL up to a URL with the prefix `end`. */
  signIn(browser: Browser, ask: string, person: string, end: string): Promise<string>;
}

/** Starts a provider at which `redirectUris` are registered. */
export async function startIdentityProvider(
  redirectUris: readonly string[],
  ...first: readonly SigningKey[]
): Promise<IdentityProvider> {
  let answer: (req: never, res: never) => unknown = () => {};
  let forged: (() => Promise<string>) | undefined;
  let failure: number | undefined;
  const removed = new Set<string>();
  const claims = new Map<string, Record<string, unknown>>();
  const tokenRequests: string[] = [];
  const idp = createServer(async (req, res) => {
    if (req.url === "/token" && failure !== undefined) {
      tokenRequests.push("failed");
      res.statusCode = failure;
      res.end("{}");
    } else if (req.url === "/token" && forged) {
      res.setHeader("content-type", "application/json");
      res.end(
        JSON.stringify({ access_token: "a", token_type: "Bearer", id_token: await forged() }),
      );
    } else answer(req as never, res as never);
  });
  await new Promise<void>((resolve) => idp.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(idp.address() as AddressInfo).port}`;
  const adapter = memory();
  const signWith = (...keys: readonly SigningKey[]) => {
    const provider = new Provider(issuer, {
      adapter,
      clients: [
        {
          client_id: "tollgate",
          client_secret: SECRET,
          redirect_uris: redirectUris,
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
        },
      ],
      jwks: { keys: keys.map(({ jwk }) => jwk) },
      claims: { openid: ["sub", "groups"], email: ["email", "email_verified"], profile: ["name"] },
      conformIdTokenClaims: false,
      // Some providers replace a refresh token at each use.
      rotateRefreshToken: true,
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      cookies: { keys: ["one"] },
      interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/person/${uid}` },
      findAccount: (_ctx: unknown, id: string) =>
        removed.has(id)
          ? undefined
          : { accountId: id, claims: () => ({ sub: id, ...PEOPLE[id], ...claims.get(id) }) },
      // A user's clicks.
      async loadExistingGrant(ctx: {
        oidc: { session: { accountId: string }; params: { scope: string } };
      }) {
        const { session, params } = ctx.oidc;
        const grant = new provider.Grant({ clientId: "tollgate", accountId: session.accountId });
        grant.addOIDCScope(params.scope);
        await grant.save();
        return grant;
      },
    } as never);
    provider.on("grant.success", (ctx: { oidc: { params: { grant_type: string } } }) =>
      tokenRequests.push(ctx.oidc.params.grant_type),
    );
    const callback = provider.callback();
    answer = async (req: { url: string }, res: unknown) => {
      const person = /^\/person\/[^?]*\?as=(\w+)/.exec(req.url)?.[1];
      if (person === undefined) return callback(req as never, res as never);
      req.url = req.url.split("?")[0]!;
      return provider.interactionFinished(req as never, res as never, {
        login: { accountId: person },
        consent: {},
      });
    };
  };
  signWith(...first);
  return {
    issuer,
    removed,
    claims,
    tokenRequests,
    signWith,
    forge: (make) => void (forged = make),
    fail: (status) => void (failure = status),
    async signIn(browser, ask, person, end) {
      let at = ask;
      for (let i = 0; i < 5 && !at.startsWith(end); i++) {
        at = at.startsWith(`${issuer}/person/`) ? `${at}?as=${person}` : at;
        at = await browser.follow(at, [`${issuer}/person/`, end]);
      }
      return at;
    },
    async [Symbol.asyncDispose]() {
      idp.closeAllConnections();
      await new Promise((resolve) => idp.close(resolve));
    },
  };
}

export interface Identity extends AsyncDisposable, Pick<IdentityProvider, "signWith" | "forge"> {
  readonly issuer: string;
  /** URL of the gateway's admin listener. */
  readonly admin: string;
  /** Its gateway.yaml, with these roles. */
  yaml(roles: string): string;
  /** Up to the URL to which it redirects the browser. */
  signedIn(
    person: string,
    browser?: Browser,
  ): Promise<{ browser: Browser; back: string; nonce: string }>;
}

export async function identity(...first: readonly SigningKey[]): Promise<Identity> {
  const admin = `http://127.0.0.1:${await freePort()}`;
  const idp = await startIdentityProvider([`${admin}/admin/v1/oidc/callback`], ...first);
  const { issuer } = idp;
  return {
    issuer,
    admin,
    signWith: idp.signWith,
    forge: idp.forge,
    yaml: (roles) => `
admin:
  port: ${new URL(admin).port}
  oidc:
    issuer: ${issuer}
    client_id: tollgate
    client_secret: ${SECRET}
    url: ${admin}
    roles: ${roles}
frontends: [chat-completions]
middleware: [auth]
accounts: { acme: {}, research: { parent: acme } }
providers: { demo: { use: demo } }
`,
    async signedIn(person, browser = new Browser()) {
      const ask = await browser.follow(`${admin}/admin/v1/oidc`, [`${issuer}/auth`]);
      const back = await idp.signIn(browser, ask, person, admin);
      return { browser, back, nonce: new URL(ask).searchParams.get("nonce")! };
    },
    [Symbol.asyncDispose]: () => idp[Symbol.asyncDispose](),
  };
}

/** The browser's session there. */
export async function selfOf({ admin }: Identity, browser: Browser) {
  const res = await browser.go(`${admin}/admin/v1/session`);
  return { status: res.status, body: (await res.json()) as Record<string, unknown> };
}
/** Status and code of a rejection. */
export const codeOf = async (res: Response): Promise<string> =>
  `${res.status} ${((await res.json()) as { error: { code: string } }).error.code}`;
