// An ID token is accepted if each of its claims matches this sign-in, and one of the provider's
// keys signed it: each check separately, with a token in which only that is wrong.
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { beforeAll, expect, it } from "vitest";
import type { OidcConfig } from "../../../src/config/gateway-config.ts";
import { OidcClient } from "tollgate/plugin";

const ISSUER = "https://login.example.com";
const CLIENT = "toll gate";
const NONCE = "the-nonce-of-this-sign-in";

const config: OidcConfig = {
  issuer: ISSUER,
  clientId: CLIENT,
  clientSecret: "s:ecret/1",
  callbackUrl: "https://gateway.example.com/admin/v1/oidc/callback",
  scopes: ["openid"],
  groupsClaim: "groups",
  nameClaim: "email",
  roles: [],
};

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
let own: Pair;
let ec: Pair;
beforeAll(async () => {
  own = await generateKeyPair("RS256", { extractable: true });
  ec = await generateKeyPair("ES256", { extractable: true });
});

const seconds = () => Math.floor(Date.now() / 1_000);
const fitting = (): JWTPayload => ({
  iss: ISSUER,
  aud: CLIENT,
  sub: "ann",
  nonce: NONCE,
  iat: seconds(),
  exp: seconds() + 60,
});
const signed = (
  claims: JWTPayload,
  head: { alg?: string; kid?: string } = {},
  key: unknown = own.privateKey,
) =>
  new SignJWT(claims)
    .setProtectedHeader({ alg: "RS256", kid: "own", ...head })
    .sign(key as Parameters<SignJWT["sign"]>[0]);

interface Answers {
  readonly discovered?: object;
  readonly token?: unknown;
  readonly keys?: Response;
  readonly refreshed?: object;
  readonly asked?: Request[];
}

/** A provider with correct responses except for the configured defect. */
async function providerOf({
  discovered,
  token,
  keys,
  refreshed,
  asked = [],
}: Answers): Promise<OidcClient> {
  const jwks = {
    keys: [
      { ...(await exportJWK(own.publicKey)), kid: "own" },
      { ...(await exportJWK(ec.publicKey)), kid: "ec" },
    ],
  };
  const there = {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/token`,
    jwks_uri: `${ISSUER}/jwks`,
    ...discovered,
  };
  return new OidcClient(config, (async (url: string, init: RequestInit) => {
    asked.push(new Request(url, { ...init, signal: null }));
    if (url.endsWith("/openid-configuration")) return Response.json(there);
    if (url.endsWith("/token")) return Response.json(refreshed ?? { id_token: token });
    if (url.endsWith("/userinfo")) return Response.json({ sub: "ann", email: "a@example.com" });
    return keys ?? Response.json(jwks);
  }) as never);
}
const claimsOf = async (of: Answers) =>
  (await (await providerOf(of)).exchangeCode("a code", "the verifier", NONCE)).claims;

it("accepts a valid token of each algorithm; the code is sent with verifier and client secret", async () => {
  const asked: Request[] = [];
  expect(await claimsOf({ token: await signed(fitting()), asked })).toMatchObject({ sub: "ann" });
  const byCurve = await signed(fitting(), { alg: "ES256", kid: "ec" }, ec.privateKey);
  expect(await claimsOf({ token: byCurve })).toMatchObject({ sub: "ann" });
  const late = { ...fitting(), iat: seconds() - 100, exp: seconds() - 30 };
  expect(await claimsOf({ token: await signed(late) })).toMatchObject({ sub: "ann" });
  const mine = { ...fitting(), aud: [CLIENT, "another"], azp: CLIENT };
  expect(await claimsOf({ token: await signed(mine) })).toMatchObject({ sub: "ann" });
  const token = asked.find(({ url }) => url.endsWith("/token"))!;
  expect(Object.fromEntries(new URLSearchParams(await token.text()))).toEqual({
    grant_type: "authorization_code",
    code: "a code",
    redirect_uri: config.callbackUrl,
    code_verifier: "the verifier",
  });
  const basic = Buffer.from("toll%20gate:s%3Aecret%2F1").toString("base64");
  expect(token.headers.get("authorization")).toBe(`Basic ${basic}`);
});

it.each<[string, (claims: JWTPayload) => JWTPayload]>([
  ["another issuer's", (claims) => ({ ...claims, iss: "https://evil.example" })],
  ["for another client", (claims) => ({ ...claims, aud: "another" })],
  ["for several, made for another", (claims) => ({ ...claims, aud: [CLIENT, "b"], azp: "b" })],
  ["of another sign-in", (claims) => ({ ...claims, nonce: "another" })],
  ["of no sign-in", ({ nonce: _, ...claims }) => claims],
  ["over", (claims) => ({ ...claims, exp: seconds() - 120 })],
  ["without an end", ({ exp: _, ...claims }) => claims],
  ["without a beginning", ({ iat: _, ...claims }) => claims],
  ["without a subject", ({ sub: _, ...claims }) => claims],
  ["not valid yet", (claims) => ({ ...claims, nbf: seconds() + 600 })],
])("rejects a token that is %s", async (_, change) => {
  await expect(claimsOf({ token: await signed(change(fitting())) })).rejects.toThrow();
});

it("rejects a token with another algorithm, although it is signed with the provider's key", async () => {
  const stranger = await generateKeyPair("RS256");
  const none = [{ alg: "none" }, fitting()]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  for (const token of [
    await signed(fitting(), {}, stranger.privateKey),
    await signed(fitting(), { kid: "unknown" }, stranger.privateKey),
    await new SignJWT(fitting())
      .setProtectedHeader({ alg: "HS256", kid: "own" })
      .sign(Buffer.from(JSON.stringify(await exportJWK(own.publicKey)))),
    `${none}.`,
    7,
    undefined,
    "rubbish",
  ])
    await expect(claimsOf({ token })).rejects.toThrow();
  const wide = await generateKeyPair("RS512", { extractable: true });
  const keys = Response.json({
    keys: [{ ...(await exportJWK(wide.publicKey)), kid: "own" }],
  });
  const token = await signed(fitting(), { alg: "RS512" }, wide.privateKey);
  await expect(claimsOf({ token, keys })).rejects.toThrow(/"alg"/);
});

it("does not use a provider with another issuer, without endpoints, or with an invalid response", async () => {
  const token = await signed(fitting());
  for (const discovered of [
    { issuer: "https://evil.example" },
    { issuer: `${ISSUER}/` },
    { token_endpoint: undefined },
    { jwks_uri: "file:///etc/passwd" },
    { authorization_endpoint: "javascript:alert(1)" },
    { token_endpoint: "http://login.example.com/token" },
  ])
    await expect(claimsOf({ token, discovered })).rejects.toThrow(
      /of the issuer "https|metadata has (?:no|an invalid) /,
    );
  const large = JSON.stringify({ keys: [], more: "x".repeat(300_000) });
  for (const [keys, why] of [
    [new Response(large), /too large/],
    [Response.json({ keys: [] }, { status: 503 }), /responded with status 503/],
    [new Response("no JSON"), /did not respond with a JSON object/],
  ] as const)
    await expect(claimsOf({ token, keys })).rejects.toThrow(why);
});

it("an invalid userinfo endpoint prevents no sign-in, and is not used", async () => {
  const token = await signed(fitting());
  for (const endpoint of [null, "", 7, "/userinfo", "http://login.example.com/userinfo"]) {
    const discovered = { userinfo_endpoint: endpoint };
    const asked: Request[] = [];
    expect(await claimsOf({ token, discovered })).toMatchObject({ sub: "ann" });
    const provider = await providerOf({ discovered, refreshed: { access_token: "a" }, asked });
    const result = await provider.refresh("the first one");
    await expect(result!.readClaims("ann")).rejects.toThrow(
      endpoint === null ? /no userinfo endpoint/ : /invalid userinfo_endpoint/,
    );
    expect(asked.map(({ url }) => url)).not.toContainEqual(expect.stringMatching(/userinfo/));
  }
});

it("fetches the discovery document once, and again after a failure", async () => {
  const asked: Request[] = [];
  const provider = await providerOf({ asked });
  await provider.authorizationUrl("flow");
  await provider.authorizationUrl("flow");
  expect(asked).toHaveLength(1);
  let up = false;
  const reached = new OidcClient(config, (async () => {
    if (!up) throw new Error("It is down.");
    return Response.json({
      issuer: ISSUER,
      authorization_endpoint: `${ISSUER}/a`,
      token_endpoint: `${ISSUER}/t`,
      jwks_uri: `${ISSUER}/k`,
    });
  }) as never);
  await expect(reached.authorizationUrl("flow")).rejects.toThrow("It is down.");
  up = true;
  expect(await reached.authorizationUrl("flow")).toMatch(`${ISSUER}/a?`);
});

it("a refresh returns the new token before it reads keys or claims, which may fail", async () => {
  const refreshed = { id_token: "not a token", refresh_token: "the next one" };
  for (const of of [
    { refreshed },
    { refreshed: { ...refreshed, id_token: await signed({ ...fitting(), sub: "bob" }) } },
    {
      refreshed: { ...refreshed, id_token: await signed(fitting()) },
      keys: Response.json({}, { status: 503 }),
    },
    { refreshed: { access_token: "a", refresh_token: "the next one" } },
  ]) {
    const result = await (await providerOf(of)).refresh("the first one");
    expect(result!.refreshToken).toBe("the next one");
    await expect(result!.readClaims("ann")).rejects.toThrow();
  }
  const there = { userinfo_endpoint: `${ISSUER}/userinfo` };
  const provider = await providerOf({ discovered: there, refreshed: { access_token: "a" } });
  const result = (await provider.refresh("the first one"))!;
  expect(result.refreshToken).toBe("the first one");
  expect(await result.readClaims("ann")).toMatchObject({ email: "a@example.com" });
});
