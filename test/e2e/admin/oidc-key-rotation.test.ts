// Keys of the identity provider change while users sign in: a token signed with a currently
// published key is accepted, and one with a withdrawn key is not. Each rejected token has only the
// named defect.
import { SignJWT, type JWTPayload } from "jose";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import {
  codeOf,
  identity,
  type Identity,
  selfOf,
  type SigningKey,
  signingKey,
} from "./identity-provider.ts";

let old: SigningKey;
let next: SigningKey;
let there: Identity;
let at: InProcessGateway;
beforeAll(async () => {
  [old, next] = await Promise.all([signingKey("old"), signingKey("next")]);
  there = await identity(old);
  at = await startInProcess({ yaml: there.yaml("{ platform: { role: owner } }") });
}, 60_000);
beforeEach(() => there.signWith(old));
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await there?.[Symbol.asyncDispose]();
});

const seconds = () => Math.floor(Date.now() / 1_000);
const claimsFor = (nonce: string): JWTPayload => ({
  iss: there.issuer,
  aud: "tollgate",
  sub: "ann",
  nonce,
  iat: seconds(),
  exp: seconds() + 60,
  groups: ["platform"],
});
const by =
  ({ kid, key }: SigningKey) =>
  (claims: JWTPayload): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid }).sign(key);
const text = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

/** Result of a sign-in with this ID token. */
async function withToken(make: (claims: JWTPayload) => Promise<string>): Promise<string> {
  const { browser, back, nonce } = await there.signedIn("ann");
  there.forge(() => make(claimsFor(nonce)));
  const said = await browser.go(back).finally(() => there.forge(undefined));
  expect((await selfOf(there, browser)).status).toBe(said.status === 302 ? 200 : 401);
  return said.status === 302 ? "in" : codeOf(said);
}

it("a key that is new since the start of a sign-in is accepted, also for the next one", async () => {
  const begun = await there.signedIn("ann");
  there.signWith(next);
  expect((await begun.browser.go(begun.back)).status).toBe(302);
  expect((await selfOf(there, begun.browser)).body).toMatchObject({ role: "owner" });
  const { browser, back } = await there.signedIn("ann");
  expect((await browser.go(back)).status).toBe(302);
});

it("both of two published keys are accepted; a withdrawn key is not", async () => {
  expect(await withToken(by(old))).toBe("in");
  expect(await withToken(by(next))).toBe("401 oidc_refused");
  there.signWith(next, old);
  expect(await withToken(by(old))).toBe("in");
  expect(await withToken(by(next))).toBe("in");
  there.signWith(next);
  expect(await withToken(by(old))).toBe("401 oidc_refused");
  // Under the name of the remaining one too.
  expect(await withToken(by({ ...old, kid: "next" }))).toBe("401 oidc_refused");
  expect(await withToken(by(next))).toBe("in");
});

it.each<[string, (claims: JWTPayload) => Promise<string>]>([
  ["over", (claims) => by(old)({ ...claims, iat: seconds() - 600, exp: seconds() - 120 })],
  ["for another audience", (claims) => by(old)({ ...claims, aud: "another" })],
  ["of another issuer", (claims) => by(old)({ ...claims, iss: "https://evil.example" })],
  ["of another sign-in", (claims) => by(old)({ ...claims, nonce: "A".repeat(43) })],
  ["signed by nobody", async (claims) => `${text({ alg: "none" })}.${text(claims)}.`],
])("a token that is %s is rejected", async (_, make) => {
  expect(await withToken(make)).toBe("401 oidc_refused");
});
