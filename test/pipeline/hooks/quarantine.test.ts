// A hook that keeps failing is not called for some time: a fail-closed hook stays closed, a
// skippable one is skipped, and a success ends it. The result of a hook is validated before it is
// used.
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { fail, type Hooks, type ModelEvent } from "tollgate/plugin";
import { HookBreaker } from "../../../src/pipeline/hooks/hook-breaker.ts";
import { installTestClock } from "../../kit/clock.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const ANSWER = { id: "u", model: "m", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" };
const mistake = (): never => {
  throw new TypeError("a mistake in a plugin");
};

function conduct() {
  const told: string[] = [];
  let now = 0;
  const one = new HookBreaker(
    { plugin: "p", hook: "h" },
    {
      onQuarantined: (_, failures) => told.push(`in ${failures}`),
      onReleased: () => told.push("out"),
    },
    () => now,
  );
  return { one, told, pass: (ms: number) => (now += ms) };
}

describe("a hook breaker", () => {
  it("opens for five seconds after five failures in a row of several clients, and then twice as long each time", () => {
    const { one, told, pass } = conduct();
    for (let i = 0; i < 5; i++) {
      expect(one.tryEnter()).toBe(true);
      one.recordFailure("threw", `k${i}`);
    }
    expect([one.tryEnter(), told]).toEqual([false, ["in 5"]]);
    for (const ms of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      pass(ms - 1);
      expect(one.tryEnter()).toBe(false);
      pass(1);
      // One probe is sent.
      expect([one.tryEnter(), one.tryEnter()]).toEqual([true, false]);
      one.recordFailure("timeout", "k");
    }
    expect(one.quarantine).toMatchObject({ plugin: "p", hook: "h", reason: "timeout" });
    pass(60_000);
    expect(one.tryEnter()).toBe(true);
    one.recordSuccess();
    expect([one.tryEnter(), one.tryEnter(), one.isHealthy, one.quarantine]).toEqual([
      true,
      true,
      true,
      undefined,
    ]);
    expect(told).toEqual(["in 5", "out"]);
  });

  it("needs many more failures of a single client", () => {
    const { one } = conduct();
    let asked = 0;
    for (; one.tryEnter(); asked++) one.recordFailure("threw", "the one");
    expect(asked).toBe(17);
  });

  it("abandons a probe that never returns", () => {
    const { one, pass } = conduct();
    for (let i = 0; i < 5; i++) one.recordFailure("threw", {});
    pass(5_000);
    expect([one.tryEnter(), one.tryEnter()]).toEqual([true, false]);
    pass(30_000);
    expect(one.tryEnter()).toBe(true);
  });

  it("reports each change in order, and never probes early, whatever happens", () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("fail" as const), who: fc.integer({ min: 0, max: 3 }) }),
      fc.record({ do: fc.constant("go" as const), who: fc.constant(0) }),
      fc.record({ do: fc.constant("wait" as const), who: fc.integer({ min: 1, max: 20_000 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { one, told, pass } = conduct();
        for (const { do: what, who } of steps) {
          if (what === "wait") pass(who);
          else if (!one.isHealthy && !one.tryEnter()) continue;
          else if (what === "fail") one.recordFailure("threw", who);
          else one.recordSuccess();
        }
        told.forEach((line, i) => expect(line.startsWith(i % 2 === 0 ? "in" : "out")).toBe(true));
        expect(one.quarantine === undefined).toBe(told.length % 2 === 0);
      }),
    );
  });
});

/** A gateway with a different client for each request. */
async function house(
  hook: NonNullable<TestServicesOptions["hooks"]>[number],
  more: Partial<TestServicesOptions> = {},
) {
  const up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify(ANSWER));
  });
  let n = 0;
  const s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" as const }] },
    },
    hooks: [{ admit: (x) => x.addLabel("n", String(n++)), ...hook }],
    ...more,
  });
  const ask = async () => {
    const res = await s.ask({ model: "p/m", text: "hi" });
    return { status: res.status, text: await res.text(), again: res.headers.get("retry-after-ms") };
  };
  return {
    s,
    up,
    ask,
    async [Symbol.asyncDispose]() {
      await s[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

/** Each failure counts as one of another client. */
function manyClients() {
  const failed = HookBreaker.prototype.recordFailure;
  const spy = vi.spyOn(HookBreaker.prototype, "recordFailure").mockImplementation(function (
    this: HookBreaker,
    why,
  ) {
    failed.call(this, why, {});
  });
  onTestFinished(() => spy.mockRestore());
}

/** Each hook, and a way in which it can fail. */
const FAILING: { readonly [H in Exclude<keyof Hooks, "settle">]: Hooks[H] } = {
  admit: mistake,
  edit: mistake,
  rewrite: mistake,
  inspect: mistake,
  route: mistake,
  charge: mistake,
  prepare: mistake,
  attempt: mistake,
  event: mistake,
  watch: mistake,
};
const PASSABLE = ["edit", "rewrite", "inspect", "route", "attempt", "watch"];

describe.each(Object.keys(FAILING) as (keyof typeof FAILING)[])("%s", (name) => {
  it("that keeps failing is not called, fails closed, and is called again later", async () => {
    manyClients();
    let asked = 0;
    let broken = true;
    const whole: Hooks = {
      ...(name === "rewrite" && { rewrite: (request) => request }),
      ...(name === "route" && { route: (list) => list }),
      ...(name === "attempt" && { attempt: (_call, next) => next() }),
      ...(name === "event" && { event: (_call, next) => next }),
      ...(name === "watch" && { watch: () => () => {} }),
    };
    const hook = (...handed: unknown[]) => {
      asked++;
      if (broken) mistake();
      return (whole[name] as ((...of: unknown[]) => unknown) | undefined)?.(...handed);
    };
    await using h = await house({ [name]: hook } as Hooks);
    for (let i = 0; i < 5; i++) {
      const { status, text } = await h.ask();
      expect([status, text]).toEqual([
        500,
        expect.stringContaining(`middleware.m0 failed (${name})`),
      ]);
    }
    const held = await h.ask();
    expect(held.status).toBe(503);
    expect(held.text).toContain("middleware.m0");
    expect(Number(held.again)).toBeGreaterThan(1_000);
    expect([asked, h.up.asked.length]).toEqual([5, ["event", "watch"].includes(name) ? 5 : 0]);
    expect(h.s.notices).toMatchObject([
      { type: "quarantined", plugin: "middleware.m0", hook: name },
    ]);
    expect(h.s.house.hookBreakers.list()).toMatchObject([{ plugin: "middleware.m0", hook: name }]);
    broken = false;
    installTestClock().skip(6_000);
    const probe = h.ask();
    await until(() => asked === 6);
    expect((await probe).status).toBe(200);
    expect(h.s.notices.at(-1)).toMatchObject({ type: "released" });
  });

  it.runIf(PASSABLE.includes(name))(
    "is skipped under on_error: continue, and not called either",
    async () => {
      manyClients();
      let asked = 0;
      const hook = () => {
        asked++;
        return mistake();
      };
      await using h = await house({ [name]: hook, onError: "continue" } as never);
      for (let i = 0; i < 8; i++) expect((await h.ask()).status).toBe(200);
      expect(asked).toBe(5);
      expect(h.s.log.filter(({ fields }) => fields.action === "skipped").length).toBe(5);
    },
  );

  it("that rejects has not failed, however often", async () => {
    manyClients();
    let asked = 0;
    const hook = () => {
      asked++;
      return fail("forbidden", "No.");
    };
    await using h = await house({ [name]: hook } as Hooks);
    for (let i = 0; i < 8; i++) expect((await h.ask()).status).toBe(403);
    expect([asked, h.s.notices]).toEqual([8, []]);
  });
});

it.each(["event", "watch"] as const)(
  "%s that fails within each response has not reached its end",
  async (name) => {
    manyClients();
    const stage = (e: ModelEvent) => {
      if (e.type === "delta") mistake();
    };
    await using h = await house({ [name]: () => stage });
    for (let i = 0; i < 5; i++) expect((await h.ask()).status).toBe(500);
    expect(h.s.notices).toMatchObject([{ type: "quarantined", hook: name }]);
  },
);

it("a settle hook that keeps failing is not called, and no request is affected", async () => {
  manyClients();
  let asked = 0;
  const settle = () => {
    asked++;
    mistake();
  };
  await using h = await house({ settle });
  for (let i = 0; i < 8; i++) expect((await h.ask()).status).toBe(200);
  await until(() => h.s.notices.length > 0);
  expect(asked).toBe(5);
});

const GARBAGE: readonly unknown[] = [null, 0, "x", true, [], {}, () => {}, Symbol("x"), 1n];
const some = (not: (one: unknown) => boolean) => GARBAGE.filter((one) => !not(one));
const results: { readonly [hook: string]: readonly unknown[] } = {
  rewrite: [...GARBAGE, { operation: "chat", turns: [null] }, { operation: "chat", turns: "x" }],
  route: [...some(Array.isArray), [null], [{ candidate: null }], [{ candidate: {}, kind: "no" }]],
  charge: [
    ...some((one) => typeof one === "object" && one !== null),
    null,
    { limits: 1 },
    { limits: [null] },
    { limits: [{ scope: "x", unit: "sheep", max: 1, per: "day" }] },
    { limits: [{ scope: "x", unit: "requests", max: -1, per: "day" }] },
    { labels: { a: 1 } },
    { hold: "tight" },
  ],
  attempt: [...GARBAGE, undefined],
  watch: some((one) => typeof one === "function"),
  event: some((one) => typeof one === "function"),
};

describe.each(Object.entries(results))("an invalid result of %s", (name, all) => {
  it("is rejected by its name, whatever it is", async () => {
    const told = (value: unknown) => (name === "attempt" ? Promise.resolve(value) : value);
    for (const value of all) {
      await using h = await house({ [name]: () => told(value) } as never);
      const { status, text } = await h.ask();
      expect([String(typeof value), status, text]).toEqual([
        String(typeof value),
        500,
        expect.stringContaining(`middleware.m0 failed (${name})`),
      ]);
    }
  });
});

it("an event hook emits an event, or the response ends with the hook's name", async () => {
  const events: readonly unknown[] = [
    ...GARBAGE,
    { type: "weather" },
    { type: "delta", index: 0, text: 5 },
    { type: "delta", index: -1, text: "x" },
    { type: "open", index: 0 },
    { type: "usage" },
    { type: "toString" },
  ];
  for (const event of events) {
    const hook: Hooks["event"] = (_call, next) => (e: ModelEvent) =>
      e.type === "delta" ? next(event as ModelEvent) : next(e);
    await using h = await house({ event: hook });
    const { status, text } = await h.ask();
    expect([status, text]).toEqual([500, expect.stringContaining("middleware.m0 failed (event)")]);
    expect(h.s.house.targetHealth.describeCooldowns()).toEqual([]);
  }
});
