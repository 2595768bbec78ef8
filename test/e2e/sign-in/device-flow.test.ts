// People sign in to the gateway with a real identity provider: the device flow with exactly the
// requests of Claude Code, the permissions of groups, and every deviation on the way.
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  ask,
  DEVICE_GRANT,
  identify,
  OPTIONS,
  poll,
  postForm,
  refresh,
  signIn,
  startDevice,
  startSignIn,
  submit,
  type SignInSetup,
} from "../../kit/device-flow.ts";
import { until } from "../../kit/wait.ts";
import { Browser, SECRET } from "../admin/identity-provider.ts";

let at: SignInSetup;
let url: string;
beforeAll(async () => {
  at = await startSignIn();
  url = at.url;
}, 60_000);
afterAll(() => at?.[Symbol.asyncDispose]());

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString()) as Record<string, unknown>;
const errorOf = async (res: Response) => {
  const { type, error } = (await res.json()) as { type: string; error: { type: string } };
  return `${res.status} ${type} ${error.type}`;
};

it("metadata names endpoints of the same origin, and no authorization endpoint", async () => {
  const res = await fetch(`${url}/.well-known/oauth-authorization-server`);
  expect(await res.json()).toEqual({
    issuer: url,
    device_authorization_endpoint: `${url}/oauth/device_authorization`,
    token_endpoint: `${url}/oauth/token`,
    revocation_endpoint: `${url}/oauth/revoke`,
    response_types_supported: [],
    grant_types_supported: [DEVICE_GRANT, "refresh_token"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    gateway_protocol_version: 1,
  });
});

it("a person signs in, and the account, name, and limits of the group apply", async () => {
  const device = await startDevice(url);
  expect(device).toMatchObject({
    verification_uri: `${url}/device`,
    verification_uri_complete: `${url}/device?user_code=${device.user_code}`,
    expires_in: 600,
    interval: 5,
  });
  expect(device.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  expect(Buffer.from(device.device_code.split(".")[1]!, "base64url")).toHaveLength(32);
  const waiting = await poll(url, device.device_code);
  expect([waiting.status, waiting.body.error]).toEqual([400, "authorization_pending"]);
  const { browser, page } = await identify(at, device.user_code, "ann");
  const shown = await page.text();
  expect(shown).toContain("ann@example.com");
  expect(shown).toContain(device.user_code);
  expect((await submit(browser, url, "/device/approve")).status).toBe(200);
  const { status, headers, body } = await poll(url, device.device_code);
  expect(status).toBe(200);
  expect(headers.get("cache-control")).toBe("no-store");
  expect(body).toMatchObject({ token_type: "Bearer", expires_in: 3600, email: "ann@example.com" });
  expect(claimsOf(body.access_token)).toMatchObject({
    iss: url,
    sub: "ann",
    email: "ann@example.com",
    groups: ["staff", "platform"],
  });
  expect((await ask(url, body.access_token)).status).toBe(200);
  const usage = await fetch(`${url}/v1/usage`, {
    headers: { authorization: `Bearer ${body.access_token}` },
  });
  expect(await usage.json()).toMatchObject({
    key: "claude-gateway:ann",
    total: { calls: 1 },
    limits: [{ limit: "requests=50/day", of: "key", used: 1 }],
  });
  const { keys } = (await at.gateway.ask("keys.show", { id: "claude-gateway:ann" })) as any;
  expect(keys).toMatchObject([{ name: "ann@example.com", account: "platform" }]);
});

it("a device code is used once, and a code without approval gives nothing", async () => {
  const device = await startDevice(url);
  const { browser } = await identify(at, device.user_code, "bob");
  await submit(browser, url, "/device/approve");
  const answers = await Promise.all(Array.from({ length: 8 }, () => poll(url, device.device_code)));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(7).fill(400)]);
  const again = await poll(url, device.device_code);
  expect([again.status, again.body.error]).toEqual([400, "expired_token"]);
  // The page accepts the code no longer either.
  expect(
    (await submit(new Browser(), url, "/device", { user_code: device.user_code })).status,
  ).toBe(400);
});

it("a device that polls too fast is slowed down; forged codes look expired", async () => {
  const device = await startDevice(url);
  await poll(url, device.device_code);
  const fast = await poll(url, device.device_code);
  expect([fast.status, fast.body.error]).toEqual([400, "slow_down"]);
  const [id, secret] = device.device_code.split(".");
  for (const forged of [
    "",
    id!,
    `${id}.`,
    `${id}.${secret!.slice(1)}`,
    `${id}.${"A".repeat(43)}`,
    `dev_${"0".repeat(40)}.${secret}`,
    "x".repeat(5_000),
  ]) {
    const { status, body } = await poll(url, forged);
    expect([status, body.error]).toEqual([400, "expired_token"]);
  }
});

it("a denied device and a person without a group get access_denied", async () => {
  const denied = await startDevice(url);
  const { browser } = await identify(at, denied.user_code, "ann");
  expect((await submit(browser, url, "/device/deny")).status).toBe(200);
  expect((await poll(url, denied.device_code)).body.error).toBe("access_denied");
  const device = await startDevice(url);
  const eve = await identify(at, device.user_code, "eve");
  await submit(eve.browser, url, "/device/approve");
  const { status, body } = await poll(url, device.device_code);
  expect([status, body.error]).toEqual([400, "access_denied"]);
  expect(body.error_description).toContain("groups");
});

it("malformed requests get errors of OAuth", async () => {
  for (const [form, error] of [
    [{}, "invalid_request"],
    [{ grant_type: "password" }, "unsupported_grant_type"],
    [{ grant_type: "authorization_code", code: "x" }, "unsupported_grant_type"],
  ] as const) {
    const { status, body } = await postForm(`${url}/oauth/token`, form);
    expect([status, body.error]).toEqual([400, error]);
  }
  for (const token of ["", "tgr_", "tgr_AAAA", `tgr_${"A".repeat(200)}`, "x".repeat(9_000)]) {
    const { status, body } = await refresh(url, token);
    expect([status, body.error]).toEqual([401, "invalid_grant"]);
  }
  // A client may send parameters that the gateway does not know.
  const more = await postForm(`${url}/oauth/device_authorization`, { surface: "x", later: "y" });
  expect(more.status).toBe(200);
  const large = await postForm(`${url}/oauth/device_authorization`, {
    surface: "x".repeat(20_000),
  });
  expect([large.status, large.body.error]).toEqual([400, "invalid_request"]);
});

it("forms of other sites, other browsers, and old pages approve nothing", async () => {
  const device = await startDevice(url);
  const code = { user_code: device.user_code };
  for (const headers of [
    {},
    { origin: "https://evil.example" },
    { origin: url, "sec-fetch-site": "cross-site" },
    { origin: url, "sec-fetch-site": "same-site" },
    { origin: "null" },
  ]) {
    const res = await new Browser().go(`${url}/device`, code, "text/html", headers);
    expect(res.status).toBe(403);
  }
  // Before the person is identified, nothing can be approved.
  const early = new Browser();
  await submit(early, url, "/device", code);
  expect((await submit(early, url, "/device/approve")).status).toBe(400);
  const { browser, back } = await identify(at, device.user_code, "ann", early);
  // The callback belongs to one browser and one sign-in.
  expect((await new Browser().go(back)).status).toBe(400);
  expect((await submit(new Browser(), url, "/device/approve")).status).toBe(400);
  const foreign = await browser.go(`${url}/device/approve`, {}, "text/html", {
    origin: "https://evil.example",
  });
  expect(foreign.status).toBe(403);
  expect((await poll(url, device.device_code)).body.error).toBe("authorization_pending");
  // Another browser that enters the code takes over, and the first one has lost it.
  const other = await identify(at, device.user_code, "bob");
  expect((await submit(browser, url, "/device/approve")).status).toBe(400);
  expect((await submit(other.browser, url, "/device/approve")).status).toBe(200);
  // A page that was kept open does nothing.
  expect((await submit(other.browser, url, "/device/deny")).status).toBe(400);
});

it("a callback with a wrong state, issuer, or code signs nobody in", async () => {
  const device = await startDevice(url);
  const browser = new Browser();
  const asked = await submit(browser, url, "/device", { user_code: device.user_code });
  const back = await at.idp.signIn(browser, asked.headers.get("location")!, "ann", url);
  for (const [name, value] of [
    ["state", "A".repeat(43)],
    ["iss", "https://evil.example"],
    ["error", "access_denied"],
    ["code", ""],
  ] as const) {
    const changed = new URL(back);
    changed.searchParams.set(name, value);
    expect((await browser.go(changed.href)).status).toBe(400);
  }
  const forged = new URL(back);
  forged.searchParams.set("code", "forged");
  expect((await browser.go(forged.href)).status).toBe(502);
  expect((await submit(browser, url, "/device/approve")).status).toBe(400);
  expect((await browser.go(back)).status).toBe(200);
  expect((await browser.go(back)).status).toBe(502);
});

it("the pages run no scripts, cannot be framed, and set a strict cookie", async () => {
  const res = await fetch(`${url}/device?user_code=${encodeURIComponent('"><script>alert(1)')}`);
  const html = await res.text();
  expect(html).not.toContain("<script");
  expect(res.headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; frame-ancestors 'none'$/,
  );
  expect(res.headers.get("referrer-policy")).toBe("same-origin");
  expect(res.headers.get("cache-control")).toBe("no-store");
  const device = await startDevice(url);
  const asked = await submit(new Browser(), url, "/device", { user_code: device.user_code });
  expect(asked.headers.get("set-cookie")).toMatch(
    /^device-sign-in=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
  );
  // The redirect leads to the configured provider, whatever the form contains.
  expect(asked.headers.get("location")).toContain(`${at.idp.issuer}/auth?`);
});

it("browsers send the forms of all pages with the gateway's origin, and null is rejected", async () => {
  /** Returns the `Origin` of a form on this page: Fetch standard, "append a request Origin header". */
  const originOf = (page: Response) =>
    page.headers.get("referrer-policy") === "no-referrer" ? "null" : url;
  const device = await startDevice(url);
  const browser = new Browser();
  const send = (path: string, origin: string, form = {}) =>
    browser.go(`${url}${path}`, form, "text/html", { origin, "sec-fetch-site": "same-origin" });
  const code = { user_code: device.user_code };
  const form = await browser.go(device.verification_uri_complete);
  expect((await send("/device", "null", code)).status).toBe(403);
  const asked = await send("/device", originOf(form), code);
  expect(asked.status).toBe(303);
  const back = await at.idp.signIn(browser, asked.headers.get("location")!, "ann", url);
  const question = await browser.go(back);
  expect((await send("/device/approve", "null")).status).toBe(403);
  expect((await send("/device/approve", originOf(question))).status).toBe(200);
  expect((await poll(url, device.device_code)).status).toBe(200);
});

it("a refresh shortly after the sign-in does not ask the identity provider again", async () => {
  const tokens = await signIn(at, "ann");
  const first = await refresh(url, tokens.refresh_token);
  expect(first.status).toBe(200);
  // A confirmation of the last 30 s is used again.
  expect(at.idp.tokenRequests.filter((type) => type === "refresh_token")).toHaveLength(0);
  expect((await ask(url, first.body.access_token)).status).toBe(200);
});

it("a refresh token that is used again after the next one ends the session", async () => {
  const tokens = await signIn(at, "bob");
  const second = await refresh(url, tokens.refresh_token);
  const third = await refresh(url, second.body.refresh_token);
  expect(third.status).toBe(200);
  const stolen = await refresh(url, tokens.refresh_token);
  expect([stolen.status, stolen.body.error]).toEqual([401, "invalid_grant"]);
  expect((await refresh(url, third.body.refresh_token)).status).toBe(401);
  const res = await ask(url, third.body.access_token);
  expect(res.headers.get("x-should-retry")).toBe("false");
  expect(await errorOf(res)).toBe("401 error authentication_error");
  expect(JSON.stringify(at.gateway.log)).toContain("refresh token used twice");
});

it("signing out ends the session of one device, and no other", async () => {
  const [one, two] = [await signIn(at, "ann"), await signIn(at, "ann")];
  expect((await postForm(`${url}/oauth/revoke`, { token: one.access_token })).status).toBe(200);
  await until(async () => (await ask(url, one.access_token)).status === 401);
  expect((await refresh(url, one.refresh_token)).status).toBe(401);
  expect((await ask(url, two.access_token)).status).toBe(200);
  await postForm(`${url}/oauth/revoke`, {
    token: two.refresh_token,
    token_type_hint: "refresh_token",
  });
  await until(async () => (await ask(url, two.access_token)).status === 401);
  for (const token of ["", "x", "tgr_x", one.access_token, two.refresh_token])
    expect((await postForm(`${url}/oauth/revoke`, { token })).status).toBe(200);
});

it("a revoked key ends all sessions, and the person is out until an operator restores the key", async () => {
  const tokens = await signIn(at, "twin");
  expect((await ask(url, tokens.access_token)).status).toBe(200);
  await at.gateway.ask("keys.revoke", { id: "claude-gateway:twin" });
  const res = await ask(url, tokens.access_token);
  expect(await errorOf(res)).toBe("401 error authentication_error");
  expect((await refresh(url, tokens.refresh_token)).body.error).toBe("invalid_grant");
  const device = await startDevice(url);
  const { browser } = await identify(at, device.user_code, "twin");
  await submit(browser, url, "/device/approve");
  const denied = await poll(url, device.device_code);
  expect([denied.body.error, denied.body.error_description]).toEqual([
    "access_denied",
    "An operator has revoked your access to this gateway.",
  ]);
  await at.gateway.ask("frontends.claude-gateway/restore", { id: "claude-gateway:twin" });
  expect((await ask(url, (await signIn(at, "twin")).access_token)).status).toBe(200);
}, 30_000);

it("forged and changed access tokens are rejected in the client's protocol", async () => {
  const { access_token: token } = await signIn(at, "ann");
  const [head, body, signature] = token.split(".") as [string, string, string];
  const other = Buffer.from(JSON.stringify({ ...claimsOf(token), key: "claude-gateway:bob" }));
  for (const forged of [
    `${head}.${other.toString("base64url")}.${signature}`,
    `${head}.${body}.`,
    `${head}.${body}.${signature.slice(1)}`,
    `${head}.${body}.${"A".repeat(43)}`,
    `${head}.${body}`,
    `${head}.`,
    `${head}..`,
  ]) {
    const res = await ask(url, forged);
    expect(await errorOf(res)).toBe("401 error authentication_error");
    expect(res.headers.get("x-should-retry")).toBe("false");
  }
});

it("no token, code, cookie, or secret is in the log, the history, or the audit log", async () => {
  const tokens = await signIn(at, "bob");
  await refresh(url, tokens.refresh_token);
  await ask(url, tokens.access_token);
  const history = await at.gateway.ask("requests.list", {});
  const text = JSON.stringify(at.gateway.log) + JSON.stringify(history);
  for (const secret of [tokens.access_token, tokens.refresh_token, SECRET])
    expect(text).not.toContain(secret);
  expect(text).not.toMatch(/[?&](?:code|state|user_code)=/);
  expect(text).not.toMatch(/dev_[0-9a-f]{40}\./);
});

it("a signed-in client gets its settings and sends telemetry; others get a 401", async () => {
  const { access_token: token } = await signIn(at, "ann");
  const headers = { authorization: `Bearer ${token}` };
  expect((await fetch(`${url}/managed/settings`)).status).toBe(401);
  const none = await fetch(`${url}/managed/settings`, { headers });
  expect(await errorOf(none)).toBe("404 error not_found_error");
  const post = (more: Record<string, string>) =>
    fetch(`${url}/v1/metrics`, {
      method: "POST",
      headers: { "content-type": "application/x-protobuf", ...more },
      body: new Uint8Array([10, 0]),
    });
  expect((await post({})).status).toBe(401);
  const accepted = await post(headers);
  expect([accepted.status, (await accepted.arrayBuffer()).byteLength]).toEqual([200, 0]);
  const protocol = await fetch(`${url}/protocol`);
  expect(protocol.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
  expect(await protocol.text()).toContain("/oauth/device_authorization");
});

it("sign-ins and codes are limited by address", async () => {
  const address = "192.0.2.7";
  const start = () => postForm(`${url}/oauth/device_authorization`, {}, address);
  let answer = await start();
  for (let i = 0; i < 40 && answer.status === 200; i++) answer = await start();
  expect([answer.status, answer.body.error]).toEqual([429, "slow_down"]);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  const guess = () =>
    submit(new Browser(), url, "/device", { user_code: "BBBB-BBBB" }, `203.0.113.1, ${address}`);
  let page = await guess();
  for (let i = 0; i < 30 && page.status === 400; i++) page = await guess();
  expect(page.status).toBe(429);
  // Others are not affected.
  expect((await startDevice(url)).user_code).toBeDefined();
}, 30_000);

it("limits of an operator are kept; limits of gateway.yaml are replaced with the config", async () => {
  const tokens = await signIn(at, "ann");
  await at.gateway.write(
    at.yaml(`${OPTIONS.replace("requests=50/day", "requests=70/day")}      login_notice: New\n`),
  );
  await until(async () => "login_notice" in (await startDevice(url)));
  expect(await limitOf((await signIn(at, "ann")).access_token)).toBe("requests=70/day");
  await at.gateway.ask("keys.update", { id: "claude-gateway:ann", limits: ["requests=9/day"] });
  await signIn(at, "ann");
  expect(await limitOf(tokens.access_token)).toBe("requests=9/day");
}, 30_000);

async function limitOf(token: string): Promise<string | undefined> {
  const res = await fetch(`${url}/v1/usage`, { headers: { authorization: `Bearer ${token}` } });
  return ((await res.json()) as any).limits[0]?.limit;
}
