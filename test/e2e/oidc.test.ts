// People sign in at the admin listener with a real identity provider: the code flow with PKCE, state and nonce; what a group may do, and
// everything on the way that is not as it was begun.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";
import { generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startGateway, type Daemon } from "../kit/daemon.ts";
import { until } from "../kit/waits.ts";

const SECRET = "canary-oidc-5b1f-client-secret";
const PEOPLE: Readonly<Record<string, { groups?: string[]; email?: string }>> = {
  ann: { groups: ["staff", "platform"], email: "ann@example.com" },
  bob: { groups: ["research"], email: "bob@example.com" },
  eve: { groups: ["visitors"], email: "eve@example.com" },
  kim: { email: "kim@example.com" },
};

/** A browser, as far as it matters: cookies by host, and no redirect is followed unseen. */
class Browser {
  readonly jar = new Map<string, Map<string, string>>();

  async go(to: string, form?: Record<string, string>): Promise<Response> {
    const { host } = new URL(to);
    const cookies = this.jar.get(host) ?? new Map<string, string>();
    this.jar.set(host, cookies);
    const res = await fetch(to, {
      redirect: "manual",
      method: form ? "POST" : "GET",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
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

  /** Follows redirects up to, and not into, an address of the gateway's that begins so. */
  async follow(to: string, end: string): Promise<string> {
    for (let i = 0; i < 12; i++) {
      const res = await this.go(to);
      const next = res.headers.get("location");
      if (next === null) throw new Error(`${to} answers ${res.status}: ${await res.text()}`);
      to = new URL(next, to).href;
      if (to.startsWith(end)) return to;
    }
    throw new Error("It goes on and on.");
  }
}

let idp: Server;
let issuer: string;
let at: Daemon;
let admin: string;
/** The ID token that the provider's place is taken by, where a test forges one. */
let forged: (() => Promise<string>) | undefined;

const free = async (): Promise<number> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};
const yaml = (roles: string) => `
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
`;
const ROLES =
  "{ platform: { role: owner }, staff: { role: viewer }, research: { role: operator, account: research } }";

beforeAll(async () => {
  admin = `http://127.0.0.1:${await free()}`;
  let answer: (req: never, res: never) => unknown = () => {};
  idp = createServer(async (req, res) => {
    if (req.url === "/token" && forged) {
      res.setHeader("content-type", "application/json");
      res.end(
        JSON.stringify({ access_token: "a", token_type: "Bearer", id_token: await forged() }),
      );
    } else answer(req as never, res as never);
  });
  await new Promise<void>((resolve) => idp.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${(idp.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "tollgate",
        client_secret: SECRET,
        redirect_uris: [`${admin}/admin/v1/oidc/callback`],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    claims: { openid: ["sub", "groups"], email: ["email"], profile: ["name"] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ["one"] },
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/person/${uid}` },
    findAccount: (_ctx: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, ...PEOPLE[id] }),
    }),
    // What a person would click.
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
  const callback = provider.callback();
  answer = async (req: { url: string }, res: unknown) => {
    const person = /^\/person\/[^?]*\?as=(\w+)/.exec(req.url)?.[1];
    if (person === undefined) return callback(req as never, res as never);
    req.url = req.url.split("?")[0]!;
    return provider.interactionFinished(req as never, res as never, {
      login: { accountId: person },
    });
  };
  at = await startGateway({ yaml: yaml(ROLES) });
}, 60_000);
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  idp.closeAllConnections();
  idp.close();
});

/** Up to the address that the provider sends the browser back to. */
async function signedIn(person: string, browser = new Browser()) {
  const login = await browser.follow(`${admin}/admin/v1/oidc`, `${issuer}/person/`);
  const back = await browser.follow(`${login}?as=${person}`, admin);
  return { browser, back };
}
const self = async (browser: Browser) => {
  const res = await browser.go(`${admin}/admin/v1/session`);
  return { status: res.status, body: (await res.json()) as Record<string, unknown> };
};
const code = async (res: Response) =>
  `${res.status} ${((await res.json()) as { error: { code: string } }).error.code}`;

it("a person's groups say the role and the account; the session is the listener's own", async () => {
  const { browser, back } = await signedIn("ann");
  const res = await browser.go(back);
  expect([res.status, res.headers.get("location")]).toEqual([302, "/"]);
  expect(res.headers.getSetCookie().join("\n")).toMatch(
    /tollgate=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict/,
  );
  // The first role of the file that a group of hers has.
  expect((await self(browser)).body).toMatchObject({
    name: "admin:oidc:ann@example.com",
    role: "owner",
    account: null,
    door: "session",
  });
  const other = await signedIn("bob");
  await other.browser.go(other.back);
  expect((await self(other.browser)).body).toMatchObject({ role: "operator", account: "research" });
  // The console's door leads there.
  const stranger = { status: 401, body: { sign_in: "/admin/v1/oidc" } };
  expect(await self(new Browser())).toMatchObject(stranger);
});

it("without a group that is named there is no session", async () => {
  for (const person of ["eve", "kim"]) {
    const { browser, back } = await signedIn(person);
    expect(await code(await browser.go(back))).toBe("403 no_role");
    expect((await self(browser)).status).toBe(401);
  }
});

it("a role that the file changes ends its sessions; by another name the sign-in begins under its own", async () => {
  const { browser, back } = await signedIn("bob");
  await browser.go(back);
  expect((await self(browser)).status).toBe(200);
  const res = await new Browser().go(`${admin.replace("127.0.0.1", "localhost")}/admin/v1/oidc`);
  expect(res.headers.get("location")).toBe(`${admin}/admin/v1/oidc`);
  expect(res.headers.getSetCookie()).toEqual([]);
  await at.write(yaml(ROLES.replace("role: operator", "role: viewer")));
  await until(async () => (await self(browser)).status === 401);
  expect(JSON.stringify(at.log)).not.toContain(SECRET);
  await at.write(yaml(ROLES));
}, 60_000);

it("what comes back is taken once, by the browser that began, as it was begun", async () => {
  const { browser, back } = await signedIn("ann");
  const stranger = new Browser();
  expect(await code(await stranger.go(back))).toBe("401 oidc_refused");
  const state = new URL(back);
  state.searchParams.set("state", "A".repeat(43));
  expect(await code(await browser.go(state.href))).toBe("401 oidc_refused");
  const mixed = new URL(back);
  mixed.searchParams.set("iss", "https://evil.example");
  expect(await code(await browser.go(mixed.href))).toBe("401 oidc_refused");
  const denied = new URL(back);
  denied.searchParams.delete("code");
  denied.searchParams.set("error", "access_denied");
  expect(await code(await browser.go(denied.href))).toBe("401 oidc_refused");
  // Nothing of that has spent the code.
  expect((await browser.go(back)).status).toBe(302);
  expect(await code(await browser.go(back))).toBe("401 oidc_refused");
});

it("a code that another browser's sign-in has brought is of no use: PKCE and nonce are the first one's", async () => {
  const victim = await signedIn("ann");
  const thief = new Browser();
  await thief.follow(`${admin}/admin/v1/oidc`, `${issuer}/person/`);
  const own = await signedIn("eve", thief);
  const swapped = new URL(own.back);
  swapped.searchParams.set("code", new URL(victim.back).searchParams.get("code")!);
  expect(await code(await thief.go(swapped.href))).toBe("401 oidc_refused");
  expect((await self(thief)).status).toBe(401);
});

it("an ID token that the provider has not signed for this sign-in is refused", async () => {
  const { privateKey } = await generateKeyPair("RS256");
  const now = Math.floor(Date.now() / 1_000);
  const claims = {
    iss: issuer,
    aud: "tollgate",
    sub: "ann",
    iat: now,
    exp: now + 60,
    groups: ["platform"],
  };
  const of = (head: object, key: Parameters<SignJWT["sign"]>[0] = privateKey) =>
    new SignJWT(claims).setProtectedHeader({ alg: "RS256", ...head }).sign(key);
  const keys = (await (await fetch(`${issuer}/jwks`)).json()) as { keys: { kid: string }[] };
  const kid = keys.keys[0]!.kid;
  const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.`;
  const all = [
    () => of({ kid }),
    () => of({}),
    () => of({ alg: "HS256", kid }, Buffer.from(JSON.stringify(keys.keys[0]))),
    async () => none,
    async () => "rubbish",
  ];
  for (const make of all) {
    const { browser, back } = await signedIn("ann");
    forged = make;
    const said = await browser.go(back).finally(() => (forged = undefined));
    expect(await code(said)).toBe("401 oidc_refused");
    expect((await self(browser)).status).toBe(401);
  }
  // Ten wrong ones in a minute, and none is looked at any more.
  const { browser, back } = await signedIn("ann");
  expect(await code(await browser.go(back))).toBe("429 too_many_tries");
});
