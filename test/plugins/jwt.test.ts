// Clients with tokens of an identity provider: accepted and rejected tokens, requests to an issuer,
// and each frontend's error.
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  base64url,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
  type JWTPayload,
} from "jose";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { getFault, type Identity } from "tollgate/plugin";
import {
  createTestContext,
  startTestGateway,
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
} from "tollgate/testing";
import jwt from "../../plugins/middleware/jwt.ts";
import { claimAt, identityOfClaims } from "tollgate/plugin";
import { KeySet, emptyKeyCache } from "../../plugins/middleware/jwt/key-set.ts";
import { trialCount } from "../kit/law-effort.ts";

const ISSUER = "https://login.example/";
const ALGORITHMS = ["RS256", "ES256", "EdDSA"] as const;
type Key = Awaited<ReturnType<typeof generateKeyPair>>;

const pairs = new Map<string, Key>();
const jwkOf = async (kid: string) => {
  const [alg] = kid.split(" ");
  return { ...(await exportJWK(pairs.get(kid)!.publicKey)), kid, alg: alg!, use: "sig" };
};
beforeAll(async () => {
  for (const alg of ALGORITHMS)
    for (const nth of ["old", "new"])
      pairs.set(`${alg} ${nth}`, await generateKeyPair(alg, { extractable: true }));
});

const now = () => Math.floor(Date.now() / 1_000);
const signed = (claims: JWTPayload = {}, kid = "RS256 old", head: object = {}) =>
  new SignJWT({ iss: ISSUER, aud: "tollgate", sub: "ann", exp: now() + 300, ...claims })
    .setProtectedHeader({ alg: kid.split(" ")[0]!, kid, ...head })
    .sign(pairs.get(kid)!.privateKey);

/** The middleware with an issuer whose keys a test chooses. */
async function door(more: object = {}, kids: string[] = ALGORITHMS.map((alg) => `${alg} old`)) {
  const asked: string[] = [];
  const accessTokens: Identity["accessToken"][] = [];
  const at = createTestContext({
    fetch: async (url) => {
      asked.push(String(url));
      if (kids.length === 0) return new Response(null, { status: 503 });
      return Response.json({ keys: await Promise.all(kids.map(jwkOf)) });
    },
  });
  onTestFinished(() => at.end());
  const corp = {
    issuer: ISSUER,
    audience: ["tollgate"],
    jwks: "https://login.example/jwks",
    algorithms: [...ALGORITHMS],
    clock_skew_s: 60,
    map: { id: "sub" },
    ...more,
  };
  const { admit } = await jwt.setup({ issuers: { corp } } as never, at.ctx);
  const ask = (token: string | undefined) => {
    let who: Identity | undefined;
    const identify = ({ accessToken, ...one }: Identity) => {
      who = one;
      accessTokens.push(accessToken);
    };
    const waiting = admit!({ identify } as never, token);
    return waiting ? waiting.then(() => who) : who;
  };
  const refusal = async (token: string) => {
    try {
      return JSON.stringify(await ask(token));
    } catch (error) {
      const fault = getFault(error);
      return fault ? `${fault.kind} ${fault.code}: ${fault.message}` : String(error);
    }
  };
  return { ask, refusal, asked, kids, accessTokens };
}

describe("a token", () => {
  it("discloses its issuer, subject, audience, and scopes, and no more", async () => {
    const { ask, accessTokens } = await door();
    const token = await signed({ scope: "read write" });
    await ask(token);
    await ask(token);
    await ask(await signed({ scp: ["read"] }));
    const digest = createHash("sha256").update(token).digest("hex");
    expect(accessTokens).toEqual([
      { issuer: ISSUER, subject: "ann", audience: ["tollgate"], scopes: ["read", "write"], digest },
      { issuer: ISSUER, subject: "ann", audience: ["tollgate"], scopes: ["read", "write"], digest },
      expect.objectContaining({ scopes: ["read"] }),
    ]);
  });

  it.each(ALGORITHMS)("signed with %s identifies its subject", async (alg) => {
    const { ask } = await door();
    expect(await ask(await signed({}, `${alg} old`))).toMatchObject({ id: "jwt:corp:ann" });
  });

  it.each([
    ["expired", { exp: now() - 61 }, "the token has expired"],
    ["without an end", { exp: undefined }, "the claim exp is not accepted"],
    ["not yet valid", { nbf: now() + 120 }, "the claim nbf is not accepted"],
    ["from the future", { iat: now() + 3_600 }, "the token is not valid yet"],
    ["for another audience", { aud: "other" }, "the claim aud is not accepted"],
    ["for none", { aud: undefined }, "the claim aud is not accepted"],
    ["of another issuer", { iss: "https://evil.example/" }, "the issuer is unknown"],
    ["of none", { iss: undefined }, "the issuer is unknown"],
  ])("%s is rejected, with the reason", async (_name, claims, why) => {
    const { refusal } = await door();
    expect(await refusal(await signed(claims as JWTPayload))).toBe(
      `unauthenticated invalid_token: Invalid token: ${why}.`,
    );
  });

  it("a small clock offset is accepted", async () => {
    const { ask } = await door();
    expect(await ask(await signed({ exp: now() - 30 }))).toBeDefined();
    expect(await ask(await signed({ nbf: now() + 30, iat: now() + 30 }))).toBeDefined();
  });

  it("signed by its issuer with a disallowed algorithm is rejected", async () => {
    const { ask, refusal } = await door({ algorithms: ["ES256"] });
    expect(await ask(await signed({}, "ES256 old"))).toBeDefined();
    for (const kid of ["RS256 old", "EdDSA old"])
      expect(await refusal(await signed({}, kid))).toBe(
        "unauthenticated invalid_token: Invalid token: the signature algorithm is not allowed.",
      );
  });

  it("without a signature, or signed with public data, is rejected", async () => {
    const { refusal, asked } = await door();
    const claims = { iss: ISSUER, aud: "tollgate", sub: "ann", exp: now() + 300 };
    const open = new UnsecuredJWT(claims).encode();
    const spki = new TextEncoder().encode(await exportSPKI(pairs.get("RS256 old")!.publicKey));
    const jwk = new TextEncoder().encode(JSON.stringify(await jwkOf("RS256 old")));
    const forged = [open, `${open}AAAA`];
    for (const secret of [spki, jwk, new Uint8Array(32)])
      for (const alg of ["HS256", "HS512"])
        forged.push(
          await new SignJWT(claims)
            .setProtectedHeader({ alg, kid: "RS256 old" })
            .sign(secret.length < 64 ? new Uint8Array(64) : secret),
        );
    const [head, body, end] = (await signed()).split(".") as [string, string, string];
    const raised = base64url.encode(JSON.stringify({ ...claims, sub: "root" }));
    forged.push(
      `${head}.${raised}.${end}`,
      `${head}.${body}.${end.slice(0, -4)}AAAA`,
      `${head}.${body}.`,
      // An embedded key, an unknown critical extension, and an invalid body.
      `${base64url.encode(JSON.stringify({ alg: "RS256", jwk: await jwkOf("RS256 new") }))}.${body}.${end}`,
      await signed({}, "RS256 old", { crit: ["x"], x: 1, b64: true }).catch(() => open),
      `${head}.bm9uZQ.${end}`,
      `${head}..${end}`,
    );
    for (const token of forged)
      expect(await refusal(token)).toMatch(/^unauthenticated invalid_token/);
    expect(asked.length).toBeLessThanOrEqual(2);
  });

  it("of a megabyte is rejected unread, and text that is no token is left to other middleware", async () => {
    const { refusal, ask, asked } = await door();
    expect(await refusal(`eyJ${"a".repeat(1_000_000)}.${"b".repeat(10)}.c`)).toMatch(
      "the token is too long",
    );
    for (const other of [undefined, "tg_1234", "eyJ-no-dots", "sk-ant.a.b", "eyJ.a.b c"])
      expect(ask(other)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it("with any changed letter is rejected", async () => {
    const { ask, refusal } = await door();
    const token = await signed({}, "ES256 old");
    expect(await ask(token)).toBeDefined();
    await fc.assert(
      fc.asyncProperty(
        fc.nat(token.length - 1),
        fc.constantFrom("A", "b", "9", "-"),
        async (i, letter) => {
          const changed = token.slice(0, i) + letter + token.slice(i + 1);
          // The last character of base64 has unused bits.
          fc.pre(
            base64url.decode(changed.split(".")[2] ?? "").join() !==
              base64url.decode(token.split(".")[2]!).join() || i < token.lastIndexOf("."),
          );
          fc.pre(changed !== token);
          const said = await refusal(changed).catch(String);
          expect(said === undefined || !said.includes('"id"')).toBe(true);
        },
      ),
      { numRuns: trialCount(60) },
    );
  });
});

describe("the token cache", () => {
  it("accepts a validated token synchronously, compared as a whole, for at most a minute", async () => {
    const { ask, kids, asked } = await door();
    const token = await signed({ exp: now() + 3_600 });
    const first = await ask(token);
    kids.length = 0;
    expect(ask(token)).toEqual(first);
    // Equal except for the last character of its signature.
    const alike = ask(`${token.slice(0, -1)}${token.endsWith("A") ? "Q" : "A"}`);
    expect(alike).toBeInstanceOf(Promise);
    await Promise.resolve(alike).catch(() => {});
    const clock = Date.now;
    onTestFinished(() => void (Date.now = clock));
    Date.now = () => clock() + 60_001;
    expect(ask(token)).toBeInstanceOf(Promise);
    expect(await ask(token)).toEqual(first);
    Date.now = () => clock() - 3_600_000;
    const back = ask(token);
    expect(back).toBeInstanceOf(Promise);
    await back;
    expect(asked).toHaveLength(1);
  });

  it("never accepts an expired token, with or without clock tolerance", async () => {
    const { ask } = await door();
    const token = await signed({ exp: now() - 10 });
    expect(await ask(token)).toBeDefined();
    expect(ask(token)).toBeInstanceOf(Promise);
  });
});

describe("an issuer's keys", () => {
  const text = async (kids: string[]) =>
    JSON.stringify({
      keys: [
        { kty: "oct", k: "AAAA", kid: "x", alg: "HS256" },
        ...(await Promise.all(kids.map(jwkOf))),
      ],
    });
  function set(read: () => Promise<string>) {
    const logs: unknown[] = [];
    const at = { time: 0, asked: 0, logs };
    const log = { warn: (of: unknown) => void logs.push(of) } as never;
    const source = { read: () => (at.asked++, read()) };
    const keys = new KeySet(emptyKeyCache(), source, log, () => at.time);
    const get = (kid: string) => keys.get({ alg: kid.split(" ")[0]!, kid }, {} as never);
    return { at, get };
  }

  it("that are rotated are found immediately, and removed keys are rejected", async () => {
    let kids = ["RS256 old"];
    const { at, get } = set(() => text(kids));
    await get("RS256 old");
    kids = ["RS256 new"];
    at.time = 31_000;
    expect(await get("RS256 new")).toBeDefined();
    await expect(get("RS256 old")).rejects.toThrow("no applicable key");
    expect(at.asked).toBe(2);
  });

  it("are fetched at most once in 30 s, however many tokens have unknown key IDs", async () => {
    const { at, get } = set(() => text(["RS256 old"]));
    await get("RS256 old");
    for (let second = 0; second < 90; second++) {
      at.time = 31_000 + second * 1_000;
      const all = await Promise.allSettled(
        Array.from({ length: 40 }, (_, i) => get(`RS256 ${second}-${i}`)),
      );
      expect(all.every(({ status }) => status === "rejected")).toBe(true);
    }
    expect(at.asked).toBe(1 + 3);
    await get("RS256 old");
  });

  it("that are unreachable: unavailable while none are known, otherwise the known ones stay in use", async () => {
    let down = true;
    const { at, get } = set(() => (down ? Promise.reject(new Error("down")) : text(["RS256 old"])));
    const error: unknown = await Promise.resolve(get("RS256 old")).catch(
      (thrown: unknown) => thrown,
    );
    expect(getFault(error)).toMatchObject({ kind: "unavailable", code: "issuer_unavailable" });
    await Promise.allSettled(Array.from({ length: 50 }, () => get("RS256 old")));
    expect(at.asked).toBe(1);
    down = false;
    at.time = 1_000;
    await get("RS256 old");
    down = true;
    at.time = 3_600_000;
    await get("RS256 old");
    await get("RS256 old");
    expect(at.asked).toBe(3);
  });

  it.each([["not JSON"], ["{}"], ['{"keys":[{"kty":"oct","k":"AAAA"}]}'], ['{"keys":[]}']])(
    "%j contains no keys",
    async (said) => {
      const { get, at } = set(async () => said);
      await expect(get("RS256 old")).rejects.toThrow("not loaded yet");
      expect(at.logs).toHaveLength(1);
    },
  );
});

describe("claims", () => {
  const map = {
    id: "sub",
    name: "name",
    account: "groups",
    models: "models",
    privacy: "zdr",
    labels: { team: "/org/team", level: "level" },
  };
  const accounts = { eng: "acme/eng", ops: "acme" };

  it("determine what a client may do", async () => {
    const { ask } = await door({
      map,
      accounts,
      limits: ["requests=9/day"],
    });
    const claims = {
      name: "Ann",
      groups: ["x", "ops", "eng"],
      models: ["up/*"],
      zdr: true,
      org: { team: "web" },
      level: 3,
    };
    expect(await ask(await signed(claims))).toEqual({
      id: "jwt:corp:ann",
      name: "Ann",
      account: "acme",
      models: ["up/*"],
      privacy: "required",
      labels: { team: "web", level: "3" },
      limits: [{ scope: "key:jwt:corp:ann", unit: "requests", max: 9, per: "day" }],
    });
  });

  it("give two users one ID only if issuer and subject are the same", async () => {
    const word = fc.stringMatching(/^[a:]{1,3}$/);
    const person = fc.record({ issuer: word, sub: word, name: fc.constantFrom("Ann", "Bob") });
    const accepted = (jwt.options as any).properties.issuers.propertyNames as { pattern: string };
    fc.assert(
      fc.property(person, person, (a, b) => {
        for (const { issuer } of [a, b]) fc.pre(new RegExp(accepted.pattern).test(issuer));
        const [one, other] = [a, b].map(({ issuer, sub, name }) =>
          identityOfClaims(
            { sub, name },
            `jwt:${issuer}`,
            { id: "sub", name: "name" },
            { default: "acme" },
            () => [],
          ),
        );
        expect(one!.id === other!.id).toBe(a.issuer === b.issuer && a.sub === b.sub);
      }),
      { numRuns: trialCount(500) },
    );
  });

  it.each([{}, { email_verified: false }, { email_verified: "no" }])(
    "are not read from an unverified email address: %j",
    async (said) => {
      const claims = { email: "boss@example.com", ...said };
      const user = { user: claims };
      const byEmail = await door({ map: { id: "email" } });
      expect(await byEmail.refusal(await signed(claims))).toContain("forbidden invalid_claim: ");
      const inAccount = await door({ map: { id: "sub", account: "/user/email" } });
      expect(await inAccount.refusal(await signed(user))).toContain("unknown_account");
      const named = await door({ map: { id: "sub", name: "email", labels: { mail: "email" } } });
      expect(await named.ask(await signed(claims))).toEqual({ id: "jwt:corp:ann", labels: {} });
      const verified = await signed({ ...claims, email_verified: true });
      expect(await byEmail.ask(verified)).toMatchObject({ id: "jwt:corp:boss@example.com" });
    },
  );

  it.each([
    ["an account that is not known", { groups: ["x"], models: [] }, "unknown_account"],
    ["no account", { models: [] }, "unknown_account"],
    ["models that are no names", { groups: "eng", models: [1] }, "invalid_claim"],
    ["no models, where they are what is allowed", { groups: "eng" }, "invalid_claim"],
    ["a privacy that is none", { groups: "eng", models: [], zdr: "much" }, "invalid_claim"],
    [
      "a label that is a list",
      { groups: "eng", models: [], org: { team: ["a"] } },
      "invalid_claim",
    ],
    ["a subject of a page", { groups: "eng", models: [], sub: "x".repeat(300) }, "invalid_claim"],
    ["no subject", { groups: "eng", models: [], sub: undefined }, "invalid_claim"],
  ])("%s: forbidden", async (_name, claims, code) => {
    const { refusal } = await door({ map, accounts });
    expect(await refusal(await signed(claims as JWTPayload))).toMatch(`forbidden ${code}`);
  });

  it("the name of an inherited property is no account, and without a table none of several is used", async () => {
    const named = await door({ map: { id: "sub", account: "groups" }, accounts });
    for (const groups of ["constructor", "__proto__", ["toString"]])
      expect(await named.refusal(await signed({ groups }))).toMatch("forbidden unknown_account");
    const plain = await door({ map: { id: "sub", account: "groups" } });
    expect(await plain.refusal(await signed({ groups: ["eng", "ops"] }))).toMatch(
      "forbidden invalid_claim",
    );
    expect(await plain.ask(await signed({ groups: ["eng"] }))).toMatchObject({ account: "eng" });
  });

  it("a default account applies if the token names none", async () => {
    const { ask } = await door({
      map: { id: "sub", account: "groups" },
      accounts,
      account: "guests",
    });
    expect(await ask(await signed({ groups: ["x"] }))).toMatchObject({ account: "guests" });
    expect(await ask(await signed({ sub: "bob" }))).toMatchObject({ account: "guests" });
  });

  it("are found by name, in a list, or by a pointer, and never in inherited properties", () => {
    const claims = { "https://x/groups": ["a", "b"], "a/b": { "c~d": 1 } };
    expect(claimAt(claims, "https://x/groups[1]")).toBe("b");
    expect(claimAt(claims, "/a~1b/c~0d")).toBe(1);
    for (const path of [
      "constructor",
      "/__proto__/x",
      "https://x/groups[9]",
      "/a~1b/c/d",
      "toString[0]",
    ])
      expect(claimAt(claims, path)).toBeUndefined();
  });
});

it("report an invalid configuration with its location", () => {
  const of = (issuers: object) => [...jwt.check!({ issuers } as never)].map(({ path }) => path);
  const a = { issuer: ISSUER, audience: ["t"] };
  expect(of({ none: a, both: { ...a, issuer: "b", jwks: "https://x", jwks_file: "x" } })).toEqual([
    "/issuers/none",
    "/issuers/both",
  ]);
  expect(of({ x: { ...a, jwks: "https://x" }, y: { ...a, jwks: "https://y" } })).toEqual([
    "/issuers/y/issuer",
  ]);
});

it("each frontend encodes a rejection in its own format; the ledger has the subject; the token is nowhere", async () => {
  const up = await startUpstream({
    ...scriptedModel(say("Hello")),
    "GET /jwks": async () => jsonResponse({ keys: [await jwkOf("RS256 old")] }),
  });
  const at = await startTestGateway({
    yaml: `frontends: [chat-completions, messages, responses, images, models]
middleware:
  - use: jwt
    with: { issuers: { corp: { issuer: "${ISSUER}", audience: [tollgate], jwks: "${up.url}/jwks", map: { account: groups } , account: acme } } }
  - auth
accounts: { acme: {} }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }`,
  });
  onTestFinished(async () => {
    await at[Symbol.asyncDispose]();
    await up.close();
  });
  const ask = async (path: string, token: string, headers: object = {}) => {
    const res = await fetch(at.url + path, {
      method: path.endsWith("models") ? "GET" : "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
      ...(!path.endsWith("models") && {
        body: JSON.stringify({
          model: "up/m",
          max_tokens: 9,
          messages: [{ role: "user", content: "Hi" }],
        }),
      }),
    });
    return { status: res.status, body: (await res.json()) as { error?: object } };
  };
  const good = await signed();
  expect((await ask("/v1/chat/completions", good)).status).toBe(200);
  expect(at.storeCommands.find((command) => command.do === "reserve")).toMatchObject({
    key: "jwt:corp:ann",
    account: "acme",
  });
  expect(
    (await ask("/v1/chat/completions", await signed({ groups: "nowhere" }))).body,
  ).toMatchObject({
    error: { code: "unknown_account" },
  });
  const old = await signed({ exp: now() - 100 });
  const message = "Invalid token: the token has expired.";
  for (const path of [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/images/generations",
    "/v1/models",
  ]) {
    const { status, body } = await ask(path, old);
    expect([path, status]).toEqual([path, 401]);
    expect(body.error).toMatchObject({ message, code: "invalid_token" });
  }
  expect(
    await ask("/v1/messages", old, { "x-api-key": old, "anthropic-version": "2023-06-01" }),
  ).toMatchObject({
    status: 401,
    body: { type: "error", error: { type: "authentication_error", message } },
  });
  const kept = JSON.stringify([at.logs, at.storeCommands], (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  for (const token of [good, old])
    for (const secret of [token, createHash("sha256").update(token).digest("hex")])
      expect(kept).not.toContain(secret);
});
