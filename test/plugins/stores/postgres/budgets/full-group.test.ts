// A flood of new members at a full group: about one count per second is sent to the database, no
// member too many is admitted, and members that are present are served.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatMemberScope } from "../../../../../src/plugin/store/member-scope.ts";
import type { Limit } from "../../../../../src/plugin/store/limit.ts";
import type { Store } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand } from "../../../../../src/testing/store.ts";
import { installTestClock } from "../../../../kit/clock.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { askAt, makePostgres } from "../../postgres-under-test.ts";

const HOUR = 3_600_000;
let n = 0;

describe.skipIf(!hasPostgres())("a full group under many new members", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres({ settings: ["track_functions=pl"] });
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  const call = (group: string, member: string, maxMembers: number, per: Limit["per"] = "total") =>
    reserveCommand(`full.${n++}`, {
      at: Date.now(),
      claims: [
        {
          scope: formatMemberScope(group, HOUR, member),
          unit: "nano_usd",
          max: 1_000_000n,
          per,
          take: 1n,
          maxMembers,
        },
      ],
    });
  const ask = async (
    store: Store,
    group: string,
    member: string,
    maxMembers = 2,
    per?: Limit["per"],
  ) => {
    const [result] = await store.apply([call(group, member, maxMembers, per)]);
    return result!.ok ? "ok" : result!.isFull ? "full" : "denied";
  };
  const scene = async (name: string) => {
    const made = await makePostgres(url, { clock: "database" });
    await made.store.open({ instance: name });
    return made;
  };

  it("locks the group about once per second", async () => {
    const { store: one, openAnother, dispose } = await scene("one");
    const two = await openAnother();
    await two.open({ instance: "two" });
    expect(await ask(one, "a", "m1")).toBe("ok");
    expect(await ask(two, "a", "m2")).toBe("ok");
    await using by = askAt(url);
    const locks = async () => {
      const [row] = await by.ask(
        "SELECT coalesce(sum(calls), 0) AS many FROM pg_stat_user_functions WHERE funcname = 'lock_meters_1'",
      );
      return Number(row!["many"]);
    };
    const time = installTestClock();
    time.stop();
    for (let i = 0; i < 100; i++) {
      expect(await ask(one, "a", `flood${i}`)).toBe("full");
      // A member that only the other gateway has served is served, and so is an own one.
      if (i === 50) expect(await ask(one, "a", "m2")).toBe("ok");
      if (i % 10 === 0) expect(await ask(one, "a", "m1")).toBe("ok");
      time.skip(20);
    }
    // A higher maximum applies at once, and so does a group that has places.
    expect(await ask(one, "a", "m3", 3)).toBe("ok");
    expect(await ask(one, "b", "m1")).toBe("ok");
    time.go();
    await dispose();
    // 100 calls without the cache. Statistics are written when a connection ends.
    expect(await locks()).toBeLessThanOrEqual(12);
  });

  it("admits a new member within a second after another has left", async () => {
    const { store, dispose } = await scene("three");
    expect(await ask(store, "c", "m1", 1)).toBe("ok");
    expect(await ask(store, "c", "m2", 1)).toBe("full");
    await using by = askAt(url);
    await by.ask(
      `UPDATE tollgate.meter SET reserved = 0, at = at - ${2 * HOUR} WHERE id LIKE '%~c~%'`,
    );
    const time = installTestClock();
    time.stop();
    expect(await ask(store, "c", "m2", 1)).toBe("full");
    time.skip(1_001);
    expect(await ask(store, "c", "m2", 1)).toBe("ok");
    time.go();
    await dispose();
  });

  it("serves members whose meters are of the window before, or of other limits", async () => {
    const { store: one, openAnother, dispose } = await scene("four");
    const two = await openAnother();
    await two.open({ instance: "five" });
    expect(await ask(one, "d", "m1", 2, "day")).toBe("ok");
    expect(await ask(one, "d", "m2", 2, "week")).toBe("ok");
    const time = installTestClock();
    time.stop();
    expect(await ask(two, "d", "m3", 2, "day")).toBe("full");
    await using by = askAt(url);
    // A new day has begun.
    await by.ask(
      "UPDATE tollgate.meter SET id = replace(id, split_part(id, '|', 3), (split_part(id, '|', 3)::bigint - 86400000)::text) WHERE id LIKE 'nano_usd|day|%~d~%'",
    );
    expect(await ask(two, "d", "m3", 2, "day")).toBe("full");
    expect(await ask(two, "d", "m1", 2, "day")).toBe("ok");
    expect(await ask(two, "d", "m2", 2, "day")).toBe("ok");
    expect(await ask(two, "d", "m3", 2, "day")).toBe("full");
    time.go();
    await dispose();
  });
});
