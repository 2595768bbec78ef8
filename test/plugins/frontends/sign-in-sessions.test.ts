// Sign-ins and sessions on virtual time, with two gateways on one store: lifetimes, refreshes, reuse
// of tokens, and an identity provider that removes people, changes groups, or is down.
import fc from "fast-check";
import { beforeEach, expect, it } from "vitest";
import { AccessTokens, getFault, type Claims, type OidcRefresh } from "tollgate/plugin";
import { createMemoryJobs } from "tollgate/store";
import { createTestContext } from "tollgate/testing";
import {
  DeviceGrants,
  type DeviceGrant,
} from "../../../plugins/frontends/claude-gateway/device-grants.ts";
import { People, type PersonData } from "../../../plugins/frontends/claude-gateway/people.ts";
import { RateLimit } from "../../../plugins/frontends/claude-gateway/rate-limit.ts";
import { Seal, SealedRecords } from "../../../plugins/frontends/claude-gateway/sealed-records.ts";
import {
  Sessions,
  type IssuedTokens,
  type SessionData,
} from "../../../plugins/frontends/claude-gateway/sessions.ts";
import { WaitingGrants } from "../../../plugins/frontends/claude-gateway/waiting-grants.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";

const START = Date.UTC(2026, 10, 29);
const HOUR = 3_600_000;
const MAX_WAITING = 20;
const ISSUER = "https://login.example.com";
const TOKEN = "first-token-of-the-provider";
const ANN = { sub: "ann", email: "ann@example.com", email_verified: true, groups: ["platform"] };

let now: number;
beforeEach(() => {
  now = START;
});

/** A provider whose refresh tokens are used once. */
class Provider {
  claims: Claims | undefined = ANN;
  isDown = false;
  /** Whether the request of the claims, after the refresh, fails. */
  hidesClaims = false;
  asked = 0;
  token = TOKEN;
  async refresh(token: string): Promise<OidcRefresh | undefined> {
    this.asked++;
    await Promise.resolve();
    if (this.isDown) throw new Error("The provider is down.");
    const { claims } = this;
    if (token !== this.token || !claims) return undefined;
    this.token = `p${this.asked}`;
    return {
      refreshToken: this.token,
      readClaims: async () => {
        if (this.hidesClaims) throw new Error("The provider's keys cannot be read.");
        return claims;
      },
    };
  }
}

function world({ id = "sub", twoIssuer = ISSUER } = {}) {
  const jobs = createMemoryJobs();
  const provider = new Provider();
  const { ctx, logs, reportedEvents } = createTestContext({ id: "frontends.gateway", jobs });
  const gateway = (oidcIssuer = ISSUER) => {
    const seal = new Seal(ctx.deriveSecret("sign-in"));
    const records = <Data>(kind: string) =>
      new SealedRecords<Data>({ jobs: () => jobs, seal, kind, now: () => now });
    const tokens = new AccessTokens(ctx, () => now);
    const people = new People({
      ctx,
      prefix: "gateway",
      tokens,
      records: records<PersonData>("person"),
      seal,
      map: { id, account: "groups" },
      accounts: { byClaim: { platform: "platform", research: "research" } },
      groupsClaim: "groups",
      limitsOf: async () => [],
      now: () => now,
    });
    const grants = new DeviceGrants({
      records: records<DeviceGrant>("grant"),
      seal,
      waiting: new WaitingGrants(MAX_WAITING),
      now: () => now,
      intervalMs: 5_000,
    });
    const sessions = new Sessions({
      ctx,
      records: records<SessionData>("session"),
      seal,
      tokens,
      people,
      oidc: provider,
      issuer: "https://gateway.example.com",
      oidcIssuer,
      tokenTtlMs: HOUR,
      sessionTtlMs: 30 * 24 * HOUR,
      now: () => now,
      sleep: () => turnEventLoop(1),
    });
    const admit = async (token: string) => {
      const { key, session } = tokens.open(token);
      return tokens.check(session, await ctx.keys.findByDigest(tokens.keyDigest(key)));
    };
    return { tokens, people, grants, sessions, admit, seal, records };
  };
  return { jobs, provider, ctx, logs, reportedEvents, one: gateway(), two: gateway(twoIssuer) };
}

const started = (of: ReturnType<typeof world>) =>
  of.one.sessions.start({ claims: ANN, refreshToken: TOKEN });
const issued = (result: IssuedTokens | string): IssuedTokens => {
  if (typeof result === "string") throw new Error(result);
  return result;
};
const codeOf = (error: unknown) => getFault(error)?.code;

it("a refresh asks the provider: changed groups apply at once, and a removed person is out", async () => {
  const at = world();
  const first = await started(at);
  expect((await at.two.admit(first.access_token)).account).toBe("platform");
  now += HOUR;
  at.provider.claims = { ...ANN, groups: ["research"] };
  const second = issued(await at.two.sessions.refresh(first.refresh_token!));
  expect(at.provider.asked).toBe(1);
  expect((await at.one.admit(second.access_token)).account).toBe("research");
  now += HOUR;
  at.provider.claims = undefined;
  expect(await at.one.sessions.refresh(second.refresh_token!)).toBe("invalid_grant");
  // The access tokens of the session end with it.
  await expect(at.two.admit(second.access_token)).rejects.toSatisfy(
    (error) => codeOf(error) === "session_ended",
  );
  at.provider.claims = ANN;
  expect(await at.one.sessions.refresh(second.refresh_token!)).toBe("invalid_grant");
});

it("if the ID of a person changes, the session continues with the new key, and old tokens end", async () => {
  const at = world({ id: "email" });
  const first = await started(at);
  expect((await at.two.admit(first.access_token)).id).toBe("gateway:ann@example.com");
  now += HOUR;
  at.provider.claims = { ...ANN, email: "ann@new.example.com" };
  const second = issued(await at.one.sessions.refresh(first.refresh_token!));
  expect((await at.two.admit(second.access_token)).id).toBe("gateway:ann@new.example.com");
  await expect(at.two.admit(first.access_token)).rejects.toSatisfy(
    (error) => codeOf(error) === "session_ended",
  );
  // A refresh without the provider continues with the new key.
  const third = issued(await at.two.sessions.refresh(second.refresh_token!));
  expect(at.provider.asked).toBe(1);
  expect((await at.one.admit(third.access_token)).id).toBe("gateway:ann@new.example.com");
  await at.one.sessions.revoke(third.refresh_token!);
  for (const { access_token } of [second, third])
    await expect(at.two.admit(access_token)).rejects.toSatisfy(
      (error) => codeOf(error) === "session_ended",
    );
});

it("after a change of the identity provider, sessions end, and tokens stay with their provider", async () => {
  const at = world({ twoIssuer: "https://other.example.com" });
  const first = await started(at);
  now += HOUR;
  expect(await at.two.sessions.refresh(first.refresh_token!)).toBe("invalid_grant");
  expect(at.provider.asked).toBe(0);
  await expect(at.one.admit(first.access_token)).rejects.toSatisfy(
    (error) => codeOf(error) === "session_ended",
  );
});

it("a person whose groups give no access any more is out at the next refresh", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR;
  at.provider.claims = { ...ANN, groups: ["visitors"] };
  expect(await at.two.sessions.refresh(first.refresh_token!)).toBe("invalid_grant");
  await expect(at.one.admit(first.access_token)).rejects.toThrow();
});

it("a provider that is down ends no session and gives no token", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR;
  at.provider.isDown = true;
  for (let tries = 0; tries < 3; tries++)
    expect(await at.one.sessions.refresh(first.refresh_token!)).toBe("temporarily_unavailable");
  at.provider.isDown = false;
  const second = issued(await at.one.sessions.refresh(first.refresh_token!));
  expect((await at.two.admit(second.access_token)).id).toBe("gateway:ann");
  expect(JSON.stringify(at.logs)).not.toContain(TOKEN);
});

it("the provider's new token is kept if the store fails before the refresh is done", async () => {
  for (const failing of ["people", "first write", "last write"]) {
    const at = world();
    const first = await started(at);
    now += HOUR;
    const put = at.jobs.put.bind(at.jobs);
    let left = failing === "last write" ? 2 : 1;
    at.jobs.put = (record) => {
      const isFailing = record.kind === (failing === "people" ? "person" : "session");
      if (at.provider.asked === 1 && isFailing && left > 0 && --left === 0)
        return Promise.reject(new Error("The store is down."));
      return put(record);
    };
    expect(await at.one.sessions.refresh(first.refresh_token!)).toBe("temporarily_unavailable");
    expect([failing, left]).toEqual([failing, 0]);
    const second = issued(await at.two.sessions.refresh(first.refresh_token!));
    await at.one.admit(second.access_token);
    expect(at.provider.asked).toBe(2);
  }
});

it("the provider's new token is kept if the provider's keys or claims cannot be read after it", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR;
  at.provider.hidesClaims = true;
  for (const gateway of [at.one, at.two, at.one])
    expect(await gateway.sessions.refresh(first.refresh_token!)).toBe("temporarily_unavailable");
  at.provider.hidesClaims = false;
  const second = issued(await at.two.sessions.refresh(first.refresh_token!));
  await at.one.admit(second.access_token);
  expect(at.provider.asked).toBe(4);
});

it("one gateway at a time asks a slow provider, which has 20 s", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR;
  const answer = Promise.withResolvers<void>();
  const refresh = at.provider.refresh.bind(at.provider);
  let asked = 0;
  at.provider.refresh = async (token) => {
    asked++;
    await answer.promise;
    return refresh(token);
  };
  const slow = at.one.sessions.refresh(first.refresh_token!);
  await until(() => asked === 1);
  now += 19_000;
  const waiting = at.two.sessions.refresh(first.refresh_token!);
  await turnEventLoop();
  answer.resolve();
  issued(await slow);
  issued(await waiting);
  expect(asked).toBe(1);
});

it("concurrent refreshes of one token at two gateways use the provider's token once", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR;
  const all = await Promise.all(
    Array.from({ length: 6 }, (_, i) =>
      (i % 2 === 0 ? at.one : at.two).sessions.refresh(first.refresh_token!),
    ),
  );
  expect(at.provider.asked).toBe(1);
  for (const each of all) await at.one.admit(issued(each).access_token);
});

it("law: parallel refreshes of one token all succeed, and each of the new tokens works later", async () => {
  const parallel = fc.record({
    gateways: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
    pick: fc.nat(5),
    waitMs: fc.constantFrom(0, 1_000, 31_000, HOUR),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(parallel, { minLength: 1, maxLength: 4 }), async (rounds) => {
      now = START;
      const at = world();
      let token = (await started(at)).refresh_token!;
      for (const { gateways, pick, waitMs } of rounds) {
        now += waitMs;
        const all = await Promise.all(
          gateways.map((isFirst) => (isFirst ? at.one : at.two).sessions.refresh(token)),
        );
        const tokens = all.map((each) => issued(each));
        for (const { access_token } of tokens) await at.two.admit(access_token);
        token = tokens[pick]!.refresh_token!;
      }
      now += HOUR;
      issued(await at.one.sessions.refresh(token));
      expect(at.reportedEvents).toEqual([]);
    }),
    { numRuns: trialCount(40) },
  );
});

it("a gateway whose clock is behind accepts a token that another one has just rotated", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR;
  issued(await at.one.sessions.refresh(first.refresh_token!));
  now -= 5_000;
  issued(await at.two.sessions.refresh(first.refresh_token!));
  expect(at.reportedEvents).toEqual([]);
});

it("a person whose key was revoked gets nothing for a token that was rotated", async () => {
  const at = world();
  const first = await started(at);
  issued(await at.one.sessions.refresh(first.refresh_token!));
  const key = (await at.ctx.keys.read(at.one.tokens.keyDigest("gateway:ann")))!;
  await at.ctx.keys.write({ ...key, revoked: now, version: (key.version ?? 1) + 1 });
  expect(await at.two.sessions.refresh(first.refresh_token!)).toBe("invalid_grant");
});

it("a token that was rotated is accepted for 30 s, if nothing newer was used", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR;
  issued(await at.one.sessions.refresh(first.refresh_token!));
  now += 20_000;
  const again = issued(await at.two.sessions.refresh(first.refresh_token!));
  now += 40_000;
  expect(await at.one.sessions.refresh(first.refresh_token!)).toBe("invalid_grant");
  expect(await at.one.sessions.refresh(again.refresh_token!)).toBe("invalid_grant");
  expect(at.reportedEvents).toMatchObject([{ name: "refresh_token_reused" }]);
});

it("access tokens expire with a tolerance for clocks, and sessions end after 30 days", async () => {
  const at = world();
  const first = await started(at);
  now += HOUR + 29_000;
  await at.one.admit(first.access_token);
  now += 2_000;
  await expect(at.one.admit(first.access_token)).rejects.toSatisfy(
    (error) => codeOf(error) === "token_expired",
  );
  // A gateway whose clock is behind accepts a token that another one has just issued.
  now = START - 20_000;
  await at.two.admit(first.access_token);
  now = START - 60_000;
  await expect(at.two.admit(first.access_token)).rejects.toThrow("not valid yet");
  now = START + 30 * 24 * HOUR + 1;
  expect(await at.one.sessions.refresh(first.refresh_token!)).toBe("invalid_grant");
});

it("without a token of the provider, there is no refresh token", async () => {
  const at = world();
  const tokens = await at.one.sessions.start({ claims: ANN, refreshToken: undefined });
  expect(tokens.refresh_token).toBeUndefined();
  await at.two.admit(tokens.access_token);
  await at.one.sessions.revoke(tokens.access_token);
  await expect(at.two.admit(tokens.access_token)).rejects.toThrow("has ended");
});

it("a revoked key rejects tokens, refreshes, and sign-ins until it is restored", async () => {
  const at = world();
  const first = await started(at);
  const digest = at.one.tokens.keyDigest("gateway:ann");
  const key = (await at.ctx.keys.read(digest))!;
  await at.ctx.keys.write({ ...key, revoked: now, version: (key.version ?? 1) + 1 });
  expect(await at.two.sessions.refresh(first.refresh_token!)).toBe("invalid_grant");
  await expect(started(at)).rejects.toSatisfy((error) => codeOf(error) === "key_revoked");
  expect(await at.two.people.restore("gateway:ann")).toBe(true);
  await at.one.admit((await started(at)).access_token);
  expect(await at.two.people.restore("gateway:nobody")).toBe(false);
});

it("law: in whatever order tokens are used, only the newest is accepted after the grace period", async () => {
  const step = fc.record({
    token: fc.nat(20),
    gateway: fc.boolean(),
    waitMs: fc.constantFrom(0, 1_000, 31_000, HOUR),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      now = START;
      const at = world();
      let current = 1;
      let rotatedAt = now;
      let isEnded = false;
      const known = [{ token: (await started(at)).refresh_token!, generation: current }];
      for (const { token, gateway, waitMs } of steps) {
        now += waitMs;
        const used = known[token % known.length]!;
        const result = await (gateway ? at.one : at.two).sessions.refresh(used.token);
        // Only the newest token and, for 30 s, the one before it are accepted. Then the session ends.
        const isNewest = used.generation === current;
        if (!isNewest && (used.generation < current - 1 || now - rotatedAt >= 30_000))
          isEnded = true;
        if (isEnded) {
          expect(result).toBe("invalid_grant");
          continue;
        }
        if (isNewest) [current, rotatedAt] = [current + 1, now];
        known.push({ token: issued(result).refresh_token!, generation: current });
      }
      now += 31_000;
      const newest = await at.one.sessions.refresh(known.at(-1)!.token);
      expect(typeof newest === "string").toBe(isEnded);
      now += 31_000;
      for (const { token } of known)
        expect(await at.two.sessions.refresh(token)).toBe("invalid_grant");
      if (typeof newest !== "string")
        expect(await at.one.sessions.refresh(newest.refresh_token!)).toBe("invalid_grant");
    }),
    { numRuns: trialCount(60) },
  );
});

it("a device code is redeemed once, at whatever gateway, and only before it expires", async () => {
  const at = world();
  const { userCode, deviceCode } = (await at.one.grants.start({
    address: "a",
    surface: undefined,
  }))!;
  const grant = (await at.two.grants.findByUserCode(userCode.toLowerCase().replace("-", " ")))!;
  const person = { claims: ANN, refreshToken: TOKEN };
  await at.two.grants.change(grant, { state: "approved", person });
  const all = await Promise.all([
    at.one.grants.redeem(deviceCode),
    at.two.grants.redeem(deviceCode),
    at.one.grants.redeem(deviceCode),
  ]);
  expect(all.filter((each) => typeof each !== "string")).toHaveLength(1);
  const late = (await at.one.grants.start({ address: "a", surface: undefined }))!;
  now += 600_001;
  expect(await at.two.grants.redeem(late.deviceCode)).toBe("expired_token");
  expect(await at.two.grants.findByUserCode(late.userCode)).toBeUndefined();
});

it("two browsers cannot both take a grant, and a stale one changes nothing", async () => {
  const at = world();
  const { userCode } = (await at.one.grants.start({ address: "a", surface: undefined }))!;
  const [a, b] = [
    (await at.one.grants.findByUserCode(userCode))!,
    (await at.two.grants.findByUserCode(userCode))!,
  ];
  expect(await at.one.grants.change(a, { browser: "one" })).toBe(true);
  expect(await at.two.grants.change(b, { browser: "two" })).toBe(false);
});

const startFrom = (of: ReturnType<typeof world>, address: string) =>
  of.one.grants.start({ address, surface: undefined });
const isOpenIn = async (of: ReturnType<typeof world>, grant: { userCode: string } | undefined) =>
  grant !== undefined && (await of.two.grants.findByUserCode(grant.userCode)) !== undefined;

it("a flood of one network ends only its own newest sign-ins, for other networks", async () => {
  const at = world();
  const ann = await startFrom(at, "192.0.2.1");
  const flood = [];
  for (let i = 0; i < 3 * MAX_WAITING; i++) {
    flood.push(await startFrom(at, "203.0.113.9"));
    now += 10;
  }
  expect(flood.filter((one) => one !== undefined)).toHaveLength(MAX_WAITING - 1);
  const newest = flood[MAX_WAITING - 2]!;
  // A person who has signed in at the identity provider can still approve.
  const grant = (await at.one.grants.findByUserCode(newest.userCode))!;
  const person = { claims: ANN, refreshToken: TOKEN };
  await at.one.grants.change(grant, { state: "identified", person });
  const bob = await startFrom(at, "192.0.2.2");
  const eve = await startFrom(at, "192.0.2.3");
  for (const one of [ann, bob, eve, flood[0], newest]) expect(await isOpenIn(at, one)).toBe(true);
  expect(await at.one.grants.redeem(flood[MAX_WAITING - 3]!.deviceCode)).toBe("expired_token");
  now += 600_000;
  expect(await startFrom(at, "203.0.113.9")).toBeDefined();
});

it.each<[string, (i: number) => string, number]>([
  ["the networks of one IPv6 site", (i) => `2001:db8:7:${i.toString(16)}::1`, 1],
  ["many IPv6 sites", (i) => `2001:db8:${(i + 9).toString(16)}::1`, 0],
  ["many IPv4 addresses", (i) => `203.0.${i >> 8}.${i & 255}`, 0],
])(
  "a flood from %s ends no sign-in that started before, and writes little",
  async (_, of, more) => {
    const at = world();
    const ann = await startFrom(at, "2001:db8:1::1");
    for (let i = 0; i < 20 * MAX_WAITING; i++) {
      await startFrom(at, of(i));
      now += 1;
    }
    expect((await at.jobs.list({ kind: "grant" })).items).toHaveLength(MAX_WAITING);
    expect(await isOpenIn(at, ann)).toBe(true);
    // If each network has one, none has to give its place.
    expect(await isOpenIn(at, await startFrom(at, "192.0.2.1"))).toBe(more === 1);
  },
);

it("a sign-in that the store did not accept takes no place", async () => {
  const at = world();
  const { put } = at.jobs;
  at.jobs.put = () => Promise.reject(new Error("The store is down."));
  for (let i = 0; i < 2 * MAX_WAITING; i++)
    await expect(startFrom(at, "192.0.2.1")).rejects.toThrow("The store is down.");
  at.jobs.put = put;
  expect(await isOpenIn(at, await startFrom(at, "192.0.2.1"))).toBe(true);
});

it("law: a network within its share of waiting sign-ins loses none, and few are accepted", () => {
  const step = fc.record({ network: fc.nat(9), waitMs: fc.constantFrom(0, 1, 1_000, 300_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 30 }), (all, max) => {
      const waiting = new WaitingGrants(max);
      let open: { id: string; network: number; expiresAt: number }[] = [];
      let time = 0;
      const countOf = (network: number) => open.filter((one) => one.network === network).length;
      const spread = () => open.reduce((sum, { network }) => sum + countOf(network), 0);
      for (const [i, { network, waitMs }] of all.entries()) {
        time += waitMs;
        const grant = { id: `g${i}`, network, expiresAt: time + 600_000 };
        open = open.filter(({ expiresAt }) => expiresAt > time);
        const largest = Math.max(0, ...open.map((one) => countOf(one.network)));
        const before = spread();
        const added = waiting.add(grant.id, {
          address: `10.0.0.${network}`,
          expiresAt: grant.expiresAt,
          now: time,
        });
        const isFull = open.length >= max;
        expect(added === "refused").toBe(isFull && countOf(network) + 1 >= largest);
        if (added === "refused") continue;
        const lost = open.find(({ id }) => id === added.ended);
        expect(lost !== undefined).toBe(isFull);
        open.push(grant);
        if (lost) {
          const own = open.filter((one) => one.network === lost.network);
          const networks = new Set(open.map((one) => one.network));
          expect(own.length).toBe(largest);
          expect(own.length).toBeGreaterThan(max / networks.size);
          expect(lost).toBe(own.at(-1));
          open = open.filter((one) => one !== lost);
          // The sum of the squares decreases, so the number of exchanges has a bound.
          expect(spread()).toBeLessThan(before);
        }
        expect(waiting.size).toBeGreaterThanOrEqual(open.length);
        expect(waiting.size).toBeLessThanOrEqual(max);
      }
    }),
    { numRuns: trialCount(100) },
  );
});

it("user codes are random: 20 letters in 8 places", async () => {
  const at = world();
  const codes = new Set<string>();
  for (let i = 0; i < 200; i++) {
    now += 60_000;
    codes.add((await at.one.grants.start({ address: "a", surface: undefined }))!.userCode);
  }
  expect(codes.size).toBe(200);
  for (const place of [0, 1, 2, 3, 5, 6, 7, 8])
    expect(new Set([...codes].map((code) => code[place])).size).toBeGreaterThan(15);
});

it("records are unreadable without the secret, and cannot be exchanged", async () => {
  const at = world();
  await started(at);
  const { deviceCode, userCode } = (await at.one.grants.start({
    address: "a",
    surface: undefined,
  }))!;
  const all: string[] = [];
  for (const kind of ["person", "session", "grant"])
    for (const record of (await at.jobs.list({ kind })).items) all.push(JSON.stringify(record));
  expect(all).toHaveLength(3);
  for (const secret of ["ann@example.com", TOKEN, userCode, deviceCode.split(".")[1]!])
    expect(all.join("\n")).not.toContain(secret);
  const sealed = at.one.seal.seal("one", "text");
  expect(at.two.seal.open("one", sealed)).toBe("text");
  expect(at.two.seal.open("two", sealed)).toBeUndefined();
  for (const bad of ["", "AAAA", sealed.slice(1), `${sealed}AAAA`])
    expect(at.one.seal.open("one", bad)).toBeUndefined();
});

it("expired records are deleted", async () => {
  const at = world();
  await at.one.grants.start({ address: "a", surface: undefined });
  await at.one.grants.start({ address: "a", surface: undefined });
  const records = at.one.records<DeviceGrant>("grant");
  await records.sweep("one");
  expect((await at.jobs.list({ kind: "grant" })).items).toHaveLength(2);
  now += 600_001;
  await records.sweep("one");
  expect((await at.jobs.list({ kind: "grant" })).items).toHaveLength(0);
});

it("an address is limited per minute; one IPv6 network counts as one address", () => {
  let at = 0;
  const limit = new RateLimit(2, 60_000, () => at);
  expect([limit.take("10.0.0.1"), limit.take("10.0.0.1"), limit.take("10.0.0.1")]).toEqual([
    undefined,
    undefined,
    60,
  ]);
  expect(limit.take("10.0.0.2")).toBeUndefined();
  expect(limit.take("2001:db8::1")).toBeUndefined();
  expect(limit.take("2001:db8:0:0:5::1")).toBeUndefined();
  expect(limit.take("2001:db8::ffff")).toBe(60);
  expect(limit.take("2001:db8:0:1::1")).toBeUndefined();
  at = 60_000;
  expect(limit.take("10.0.0.1")).toBeUndefined();
  // An attacker with many addresses uses bounded memory.
  for (let i = 0; i < 30_000; i++) limit.take(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
});
