// Users sign in at the admin listener with a real identity provider: the code flow with PKCE,
// state, and nonce, the rights of groups, and every deviation on the way.
import { generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";
import {
  Browser,
  codeOf as code,
  identity,
  type Identity,
  SECRET,
  selfOf,
  signingKey,
} from "./identity-provider.ts";

let there: Identity;
let at: InProcessGateway;
let issuer: string;
let admin: string;
const ROLES =
  "{ platform: { role: owner }, staff: { role: viewer }, research: { role: operator, account: research } }";

beforeAll(async () => {
  there = await identity(await signingKey("first"));
  ({ issuer, admin } = there);
  at = await startInProcess({ yaml: there.yaml(ROLES) });
}, 60_000);
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await there?.[Symbol.asyncDispose]();
});

const signedIn: Identity["signedIn"] = (...of) => there.signedIn(...of);
const self = (browser: Browser) => selfOf(there, browser);

it("a user's groups determine role and account; the session is the listener's own", async () => {
  const { browser, back } = await signedIn("ann");
  const res = await browser.go(back);
  expect([res.status, res.headers.get("location")]).toEqual([302, "/"]);
  expect(res.headers.getSetCookie().join("\n")).toMatch(
    /tollgate=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict/,
  );
  // The first role in the file that matches one of her groups.
  expect((await self(browser)).body).toMatchObject({
    name: "admin:oidc:ann@example.com",
    role: "owner",
    account: null,
    channel: "session",
  });
  const other = await signedIn("bob");
  await other.browser.go(other.back);
  expect((await self(other.browser)).body).toMatchObject({ role: "operator", account: "research" });
  // The console's link leads there.
  const stranger = { status: 401, body: { sign_in: "/admin/v1/oidc" } };
  expect(await self(new Browser())).toMatchObject(stranger);
});

it("two users with one email address get separate results, and the scoped one no unscoped key", async () => {
  const create = async (person: string) => {
    const { browser, back } = await signedIn(person);
    await browser.go(back);
    const { body } = await self(browser);
    const { host } = new URL(admin);
    const cookie = [...browser.jar.get(host)!]
      .map(([name, value]) => `${name}=${value}`)
      .join("; ");
    const res = await fetch(`${admin}/admin/v1/keys.create`, {
      method: "POST",
      headers: {
        cookie,
        origin: admin,
        "x-tollgate-console": "1",
        "content-type": "application/json",
        "idempotency-key": "nightly",
      },
      body: "{}",
    });
    const { secret, key } = (await res.json()) as any;
    return { name: body.name, secret, account: key?.account };
  };
  const ann = await create("ann");
  const twin = await create("twin");
  const fay = await create("fay");
  expect(ann.account).toBeUndefined();
  expect([twin.account, fay.account]).toEqual(["research", "research"]);
  expect(new Set([ann, twin, fay].map(({ secret }) => secret)).size).toBe(3);
  expect([ann.name, twin.name]).toEqual(Array(2).fill("admin:oidc:ann@example.com"));
  // An address that the provider has not verified identifies no user.
  expect(fay.name).toBe("admin:oidc:fay");
});

it("a user without a configured group gets no session", async () => {
  for (const person of ["eve", "kim"]) {
    const { browser, back } = await signedIn(person);
    expect(await code(await browser.go(back))).toBe("403 no_role");
    expect((await self(browser)).status).toBe(401);
  }
});

it("a browser with a failed sign-in gets the sign-in page with the reason, not JSON", async () => {
  const { browser, back } = await signedIn("eve");
  const res = await browser.go(back, undefined, "text/html,application/xhtml+xml");
  expect([res.status, res.headers.get("location")]).toEqual([302, "/#problem=no_role"]);
  expect((await self(browser)).status).toBe(401);
});

it("a changed role ends its sessions; a renamed listener accepts the sign-in under its own name", async () => {
  const { browser, back } = await signedIn("bob");
  await browser.go(back);
  expect((await self(browser)).status).toBe(200);
  const res = await new Browser().go(`${admin.replace("127.0.0.1", "localhost")}/admin/v1/oidc`);
  expect(res.headers.get("location")).toBe(`${admin}/admin/v1/oidc`);
  expect(res.headers.getSetCookie()).toEqual([]);
  await at.write(there.yaml(ROLES.replace("role: operator", "role: viewer")));
  await until(async () => (await self(browser)).status === 401);
  expect(JSON.stringify(at.log)).not.toContain(SECRET);
  await at.write(there.yaml(ROLES));
}, 60_000);

it("a callback is accepted once, from the browser that started it, unchanged", async () => {
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
  // None of these has used up the code.
  expect((await browser.go(back)).status).toBe(302);
  expect(await code(await browser.go(back))).toBe("401 oidc_refused");
});

it("a code from another browser's sign-in is rejected by PKCE and nonce", async () => {
  const victim = await signedIn("ann");
  const thief = new Browser();
  await thief.follow(`${admin}/admin/v1/oidc`, `${issuer}/person/`);
  const own = await signedIn("eve", thief);
  const swapped = new URL(own.back);
  swapped.searchParams.set("code", new URL(victim.back).searchParams.get("code")!);
  expect(await code(await thief.go(swapped.href))).toBe("401 oidc_refused");
  expect((await self(thief)).status).toBe(401);
});

it("an ID token that was not signed for this sign-in is rejected", async () => {
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
    there.forge(make);
    const said = await browser.go(back).finally(() => there.forge(undefined));
    expect(await code(said)).toBe("401 oidc_refused");
    expect((await self(browser)).status).toBe(401);
  }
  // After ten wrong ones in a minute, none is checked.
  const { browser, back } = await signedIn("ann");
  expect(await code(await browser.go(back))).toBe("429 too_many_tries");
});
