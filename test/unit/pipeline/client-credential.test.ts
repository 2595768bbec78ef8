// The client's own credential: which credential is taken from a request, which one is sent to an
// endpoint, and to which provider it is bound.
import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { AccessTokens } from "tollgate/plugin";
import { ClientCredential } from "../../../src/pipeline/exchange/client-credential.ts";
import { route } from "../../../src/pipeline/stages/route.ts";

const TOKEN = "canary0oat01QWxsIHlvdXIga2V5cyBhcmUgYmVsb25n";
const endpoint = (header: string) =>
  ({ transport: { definition: { auth: { header, field: "api_key" } } }, definition: {} }) as never;
const ANTHROPIC = endpoint("x-api-key");
const OPENAI = endpoint("Authorization");

const take = (headers: Record<string, string>) =>
  ClientCredential.take(
    { headers: { ...headers }, rawHeaders: Object.entries(headers).flat() },
    "tg_own",
  );
/** The headers of a call, without those that are not sent. */
const sent = (headers: Record<string, string>, to: never) =>
  JSON.parse(JSON.stringify(take(headers)!.send(to))) as unknown;

describe("an endpoint receives exactly one credential", () => {
  const authorization = `Bearer ${TOKEN}`;
  const both = { authorization, "x-api-key": "sk-other", "chatgpt-account-id": "acct-1" };

  it("is the token, or else the one in its own header", () => {
    expect(sent(both, ANTHROPIC)).toEqual({ authorization, "chatgpt-account-id": "acct-1" });
    expect(sent({ "x-api-key": "sk-other" }, ANTHROPIC)).toEqual({ "x-api-key": "sk-other" });
    expect(sent(both, OPENAI)).toEqual({ authorization, "chatgpt-account-id": "acct-1" });
    expect(sent({ authorization }, ANTHROPIC)).toEqual({ authorization });
    expect(sent(both, endpoint("x-goog-api-key"))).toMatchObject({ authorization });
  });

  it("is missing if the client sent only a key for another header", () => {
    const key = take({ "x-api-key": "sk-other" })!;
    expect([key.fits(ANTHROPIC), key.fits(OPENAI)]).toEqual([true, false]);
    expect(() => key.send(OPENAI)).toThrow();
    expect(key.isSent).toBe(false);
  });
});

describe("a credential of the gateway is never taken", () => {
  const tokens = new AccessTokens({ deriveSecret: () => new Uint8Array(32) } as never);
  const access = tokens.create({ key: "k", session: "s", expiresAt: Date.now() + 60_000 });

  test.each([
    ["a key", "tg_0123456789"],
    ["a client secret", "ek_0123456789"],
    ["a refresh token", "tgr_-0123456789"],
    ["an access token", access],
    ["one of two keys", "sk-other, tg_0123456789"],
  ])("%s", (_what, secret) => {
    expect(take({ "x-api-key": secret })).toBeUndefined();
    expect(take({ authorization: `Bearer ${secret}` })).toBeUndefined();
    expect(take({ authorization: `bearer   ${secret} ` })).toBeUndefined();
  });

  it("but a long token may contain the same characters", () => {
    const authorization = `Bearer ${TOKEN}-tg_abc.ek_def`;
    expect(sent({ authorization }, OPENAI)).toEqual({ authorization });
  });
});

describe("a text of the provider that quotes the credential", () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64");

  it.each([
    ["as it is", TOKEN],
    ["in Base64", base64(TOKEN)],
    ["in Base64, with its scheme", base64(`Bearer ${TOKEN}`)],
    ["in Base64, within other text", base64(`{"authorization":"${TOKEN}!"}`)],
    ["in Base64 for URLs", Buffer.from(TOKEN).toString("base64url")],
    ["in a URL", encodeURIComponent(TOKEN)],
    ["in JSON", JSON.stringify(JSON.stringify(TOKEN))],
  ])("is masked %s", (_how, quoted) => {
    const masked = take({ authorization: `Bearer ${TOKEN}` })!.mask(`You sent ${quoted}.`);
    expect(masked).toContain("[secret]");
    for (const part of [TOKEN, base64(TOKEN).slice(4, 40)]) expect(masked).not.toContain(part);
  });

  test("law: no alignment of a token with any characters leaves it in Base64", () => {
    const text = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme-ascii" });
    const token = fc.stringMatching(/^[\w+/=~.-]{16,80}$/);
    fc.assert(
      fc.property(text, token, text, (before, secret, after) => {
        const credential = ClientCredential.take(
          { headers: { authorization: `Bearer ${secret}` }, rawHeaders: [] },
          undefined,
        );
        fc.pre(credential !== undefined);
        const masked = credential.mask(base64(`${before}${secret}${after}`));
        const decoded = Buffer.from(masked.replace("[secret]", ""), "base64").toString("latin1");
        expect(masked).toContain("[secret]");
        expect(decoded).not.toContain(secret.slice(2, -2));
      }),
    );
  });

  it("leaves other texts unchanged, also for a short token", () => {
    const text = "prompt is too long: YWI= > 200000";
    expect(take({ authorization: "Bearer ab9" })!.mask(text)).toBe(text);
    expect(take({ authorization: `Bearer ${TOKEN}` })!.mask(text)).toBe(text);
  });
});

describe("routing binds the credential to the first provider of the model", () => {
  const candidate = (provider: string, credential: string) => ({
    id: `${provider}/m`,
    provider,
    model: "m",
    protocol: "messages",
    credential,
    mode: "passthrough",
    info: {},
    mounted: { endpoint: ANTHROPIC, credential: { clientAccounts: ["*"] } },
  });
  const inputs = (...candidates: unknown[]) =>
    ({
      gen: {
        resolver: {
          resolve: () => ({ candidates, failoverOn: new Set(), strategy: "ordered" }),
        },
        targetHealth: { inOrder: (list: unknown) => ({ candidates: list, rested: [] }) },
      },
      frontend: { hooks: { lists: { route: [], watch: [] } } },
      x: { model: "best", body: {}, privacy: "off", actionType: "count", features: [], state: {} },
      operationSpec: {},
      facts: { features: [] },
      routing: { excluded: [] },
      admission: { clientCredential: take({ authorization: `Bearer ${TOKEN}` }) },
    }) as any;
  const idsOf = async (of: any) => (await route(of)).candidates.map(({ id }) => id);

  it("so another provider is no candidate, whatever happens to the first", async () => {
    const of = inputs(candidate("max", "client"), candidate("codex", "client"));
    expect(await idsOf(of)).toEqual(["max/m"]);
    expect(of.routing.excluded).toMatchObject([
      { code: "client_credential_missing", candidate: { id: "codex/m" } },
    ]);
  });

  it("and a downgrade does not bind it to another provider", async () => {
    const of = inputs(candidate("max", "client"));
    await route(of);
    const other = inputs(candidate("codex", "client"), candidate("own", "default"));
    const again = { ...other, routing: of.routing, downgradeModel: "codex/m" };
    expect(await idsOf(again)).toEqual(["own/m"]);
  });
});
