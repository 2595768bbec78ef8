// Settings of an account apply to each key in it and in all nested accounts: limits in addition to
// the key's own, and other settings as restrictions.
import * as fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import { fail, type Identity, type ModelEvent, type Reserve } from "tollgate/plugin";
import type { AccountConfig } from "../../../src/config/gateway-config.ts";
import { Accounts } from "../../../src/pipeline/accounts/accounts.ts";
import { intersectPatterns, matchesPattern } from "../../../src/catalog/model-names.ts";
import { startTestServices, type TestServicesOptions } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";

const answering = {
  frontend: createToyProtocol(),
  providers: {
    p: {
      endpoints: [
        {
          operation: "chat" as const,
          async *run(): AsyncGenerator<ModelEvent> {
            yield { type: "start", id: "u1" };
            yield { type: "open", index: 0, block: { type: "text" } };
            yield { type: "delta", index: 0, text: "Hello" };
            yield { type: "close", index: 0 };
            yield { type: "finish", reason: "stop" };
          },
        },
      ],
    },
  },
} satisfies TestServicesOptions;

const day = (scope: string, max: number) => ({ scope, unit: "tokens", max, per: "day" }) as const;

async function asked(of: Partial<TestServicesOptions>, model = "p/m") {
  const it = await startTestServices({ ...answering, ...of });
  onTestFinished(() => it[Symbol.asyncDispose]());
  const answer = await it.ask({ model, text: "Hi" });
  return {
    status: answer.status,
    text: await answer.text(),
    reserve: it.journal.find((c): c is Reserve & { at: number } => c.do === "reserve"),
  };
}

const accounts = {
  acme: {
    limits: [day("account:acme", 9_000)],
    labels: { org: "acme", env: "prod" },
    privacy: "off",
    models: ["p/*"],
  },
  research: {
    parent: "acme",
    limits: [{ scope: "account:research", unit: "requests", max: 5, per: "minute" }],
    labels: { team: "research", env: "dev" },
  },
} satisfies TestServicesOptions["accounts"];

it("limits of the key and of all its accounts are claims of one reserve, whose row has the account path", async () => {
  const { status, reserve } = await asked({
    accounts,
    identity: { account: "research", limits: [day("key:k1", 100_000)], labels: { job: "x" } },
  });
  expect(status).toBe(200);
  expect(reserve!.claims.map(({ scope }) => scope)).toEqual([
    "key:k1",
    "account:acme",
    "account:research",
  ]);
  expect(reserve!.account).toBe("acme/research");
  expect(reserve!.labels).toEqual({ org: "acme", env: "dev", team: "research", job: "x" });
});

it("a key without an account has its own limits, and its row names no account", async () => {
  const { reserve } = await asked({ accounts, identity: { limits: [day("key:k1", 9)] } });
  expect(reserve!.claims.map(({ scope }) => scope)).toEqual(["key:k1"]);
  expect(reserve!.account).toBeUndefined();
});

it("a second attempt does not count as another request of an account", async () => {
  let first = true;
  const failing = {
    endpoints: [
      {
        operation: "chat" as const,
        async *run(): AsyncGenerator<ModelEvent> {
          if (first) {
            first = false;
            fail("overloaded", "away");
          }
          yield* answering.providers.p.endpoints[0]!.run();
        },
      },
    ],
  };
  const it = await startTestServices({
    ...answering,
    providers: { p: failing, q: answering.providers.p },
    models: { both: ["p/m", "q/m"] },

    accounts: { research: { limits: accounts.research.limits } },
    identity: { account: "research" },
  } as never);
  onTestFinished(() => it[Symbol.asyncDispose]());
  await (await it.ask({ model: "both", text: "Hi" })).text();
  const claims = it.journal.flatMap((c) => (c.do === "reserve" ? [c.claims.length] : []));
  expect(claims).toEqual([1, 0]);
});

it("a key of an unknown account may use nothing", async () => {
  const { status, text, reserve } = await asked({ identity: { account: "gone" } });
  expect(status).toBe(403);
  expect(text).toContain("unknown_account");
  expect(reserve).toBeUndefined();
});

it("models, frontends, and privacy become stricter at each level", async () => {
  const identity = { account: "research" };
  const models = { ...accounts, research: { parent: "acme", models: ["*/small"] } };
  expect((await asked({ accounts: models, identity }, "p/small")).status).toBe(200);
  expect((await asked({ accounts: models, identity })).status).toBe(403);
  const frontends = { research: { frontends: ["other"] } };
  const elsewhere = await asked({ accounts: frontends, identity });
  expect([elsewhere.status, elsewhere.text.includes("frontend_not_allowed")]).toEqual([403, true]);
  const strict = { acme: { privacy: "strict" }, research: { parent: "acme", privacy: "required" } };
  const kept = await asked({
    accounts: strict,
    identity: { ...identity, privacy: "off" },
  } as never);
  // The data policy of the toy's provider is unknown.
  expect(kept.status).not.toBe(200);
  expect(kept.text).toMatch(/privacy|retain|ZDR|zdr/i);
});

it("concurrent requests are counted from the headers on, also by account", async () => {
  const open = { scope: "account:research", unit: "concurrent", max: 0, per: "open" } as const;
  const { status, text, reserve } = await asked({
    accounts: { research: { limits: [open] } },
    identity: { account: "research" },
  });
  expect(status).toBe(429);
  expect(text).toContain("account:research");
  expect(reserve).toBeUndefined();
});

const pattern = fc
  .tuple(fc.stringMatching(/^[ab]{0,4}$/), fc.boolean(), fc.stringMatching(/^[ab]{0,4}$/))
  .map(([head, star, tail]) => (star ? `${head}*${tail}` : head + tail));
const name = fc.stringMatching(/^[ab]{0,9}$/);

it("the intersection of two patterns matches exactly what both match", () => {
  fc.assert(
    fc.property(
      pattern,
      pattern,
      fc.array(name, { minLength: 20, maxLength: 40 }),
      (a, b, names) => {
        const both = intersectPatterns(a, b);
        const near = names.flatMap((n) => [n, a.replace("*", n), b.replace("*", n), ...both]);
        for (const n of near.filter((each) => !each.includes("*")))
          expect(both.some((each) => matchesPattern(each, n))).toBe(
            matchesPattern(a, n) && matchesPattern(b, n),
          );
      },
    ),
    { numRuns: trialCount(2_000) },
  );
});

const several = fc.stringMatching(/^[ab*]{0,7}$/);

it("the intersection of patterns with several stars matches nothing that only one of them matches", () => {
  fc.assert(
    fc.property(several, several, fc.array(name, { minLength: 20 }), (a, b, names) => {
      const both = intersectPatterns(a, b);
      for (const n of names)
        if (both.some((each) => matchesPattern(each, n)))
          expect([matchesPattern(a, n), matchesPattern(b, n)]).toEqual([true, true]);
    }),
    { numRuns: trialCount(2_000) },
  );
  expect(intersectPatterns("p/*flux*", "p/*")).toEqual(["p/*flux*"]);
});

/** The parent of each account, which is an earlier one or none. */
const trees = fc.array(
  fc.record({
    under: fc.nat(),
    models: fc.option(fc.array(pattern, { minLength: 1, maxLength: 3 }), { nil: undefined }),
    frontends: fc.option(fc.subarray(["x", "y", "z"], { minLength: 1 }), { nil: undefined }),
    privacy: fc.constantFrom(undefined, "off", "required", "strict"),
    labels: fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2")),
    max: fc.option(fc.nat(9), { nil: undefined }),
  }),
  { minLength: 1, maxLength: 6 },
);

it("in any tree, a key may do what all of its accounts allow, and nothing else", () => {
  const RANK = [undefined, "off", "required", "strict"];
  fc.assert(
    fc.property(
      trees,
      fc.array(pattern, { minLength: 1, maxLength: 2 }),
      fc.array(name),
      (tree, own, names) => {
        const all = new Map<string, AccountConfig>();
        for (const [i, { under, max, privacy, ...said }] of tree.entries()) {
          // The root has no parent.
          const parent = i === 0 ? undefined : `a${under % i}`;
          const limits = max === undefined ? [] : [day(`account:a${i}`, max)];
          all.set(`a${i}`, {
            id: `a${i}`,
            parent,
            name: undefined,
            limits,
            ...said,
            privacy,
          } as AccountConfig);
        }
        const made = new Accounts(all);
        for (const id of all.keys()) {
          const path: AccountConfig[] = [];
          for (let up = all.get(id); up; up = all.get(up.parent ?? "")) path.unshift(up);
          const branch = made.resolve(id);
          expect(branch.path).toBe(path.map((each) => each.id).join("/"));
          expect(branch.limits).toEqual(path.flatMap((each) => each.limits));
          const who: Identity = { id: "k", models: own, account: id };
          const narrow = made.restrict(who, branch);
          expect(made.restrict(who, branch)).toBe(narrow);
          expect(narrow.accountPath).toEqual(path.map((each) => each.id));
          expect(narrow.labels).toEqual(Object.assign({}, ...path.map((each) => each.labels)));
          const rank = Math.max(...path.map((each) => RANK.indexOf(each.privacy)));
          expect(RANK.indexOf(narrow.privacy ?? undefined)).toBe(rank);
          const lists = [own, ...path.flatMap((each) => (each.models ? [each.models] : []))];
          for (const n of names)
            expect(narrow.models!.some((each) => matchesPattern(each, n))).toBe(
              lists.every((list) => list.some((each) => matchesPattern(each, n))),
            );
          for (const f of ["x", "y", "z"])
            expect(narrow.frontends?.includes(f) ?? true).toBe(
              path.every((each) => each.frontends?.includes(f) ?? true),
            );
        }
      },
    ),
    { numRuns: trialCount(200) },
  );
});
