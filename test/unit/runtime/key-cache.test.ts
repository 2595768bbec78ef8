import { describe, expect, it } from "vitest";
import { createKeyCache } from "../../../src/runtime/services/key-cache.ts";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import type { KeyRecord } from "../../../src/plugin/store/account.ts";

function house(records: KeyRecord[] = []) {
  const stored = new Map(records.map((record) => [record.digest, record]));
  const asked: string[] = [];
  let time = 1_000_000;
  let away = false;
  let answer: (found: KeyRecord | undefined) => Promise<KeyRecord | undefined> = async (found) =>
    found;
  const keys = createKeyCache(
    {
      findKey: (hash) => {
        asked.push(hash);
        return answer(stored.get(hash));
      },
    },
    { now: () => time, ttlMs: 60_000, away: () => away },
  );
  return {
    keys,
    goAway: (is: boolean) => void (away = is),
    stored,
    asked,
    pass: (ms: number) => void (time += ms),
    answers: (how: typeof answer) => void (answer = how),
    now: () => time,
  };
}
const minted = () => {
  const { id, secret, digest } = mintKey();
  return { secret, record: { id, digest, created: 0 } satisfies KeyRecord as KeyRecord };
};

describe("keys", () => {
  it("are looked up at most once per minute, by digest", async () => {
    const { secret, record } = minted();
    const h = house([record]);
    for (let i = 0; i < 5; i++) expect(await h.keys.find(secret)).toBe(record);
    expect(h.asked).toEqual([digestKey(secret)]);
    h.pass(60_001);
    await h.keys.find(secret);
    expect(h.asked.length).toBe(2);
  });
  it("an unreachable store is not queried: cached keys are valid for their minute, and others are rejected", async () => {
    const [known, other] = [minted(), minted()];
    const h = house([known.record, other.record]);
    await h.keys.find(known.secret);
    h.goAway(true);
    expect(await h.keys.find(known.secret)).toBe(known.record);
    await expect(h.keys.find(other.secret)).rejects.toThrow(/ledger cannot be written/);
    h.pass(60_001);
    await expect(h.keys.find(known.secret)).rejects.toThrow(/ledger cannot be written/);
    expect(h.asked.length).toBe(1);
    h.goAway(false);
    expect(await h.keys.find(known.secret)).toBe(known.record);
    expect(await h.keys.find(other.secret)).toBe(other.record);
  });
  it("that are unknown are looked up and cached in the same way", async () => {
    const { secret } = minted();
    const h = house();
    expect(await h.keys.find(secret)).toBeUndefined();
    expect(await h.keys.find(secret)).toBeUndefined();
    expect(h.asked.length).toBe(1);
  });
  it("of other formats are looked up; mistyped Tollgate keys are not", async () => {
    const foreign = "sk-legacy";
    const h = house([{ id: "x", digest: digestKey(foreign), created: 0 }]);
    expect((await h.keys.find(foreign))?.id).toBe("x");
    const { secret } = minted();
    expect(await h.keys.find(`${secret.slice(0, -1)}!`)).toBeUndefined();
    expect(await h.keys.find("x".repeat(2_000))).toBeUndefined();
    expect(h.asked.length).toBe(1);
  });
  it("expire and are revoked immediately, cached or not", async () => {
    const { secret, record } = minted();
    const h = house([{ ...record, expires: 1_000_500 }]);
    expect(await h.keys.find(secret)).toBeDefined();
    h.pass(499);
    expect(await h.keys.find(secret)).toBeDefined();
    h.pass(1);
    expect(await h.keys.find(secret)).toBeUndefined();
    h.keys.invalidate();
    h.stored.set(record.digest, { ...record, revoked: h.now() + 10 });
    expect(await h.keys.find(secret)).toBeDefined();
    h.pass(10);
    expect(await h.keys.find(secret)).toBeUndefined();
  });
  it("are evicted immediately, also if a lookup started before and returned after", async () => {
    const { secret, record } = minted();
    const h = house([record]);
    let go = () => {};
    h.answers((found) => new Promise((resolve) => (go = () => resolve(found))));
    const late = h.keys.find(secret);
    await Promise.resolve();
    h.stored.set(record.digest, { ...record, revoked: 1 });
    h.keys.invalidate();
    go();
    await late;
    h.answers(async (found) => found);
    expect(await h.keys.find(secret)).toBeUndefined();
  });
  it("in concurrent lookups are looked up once", async () => {
    const { secret, record } = minted();
    const h = house([record]);
    await Promise.all(Array.from({ length: 20 }, () => h.keys.find(secret)));
    expect(h.asked.length).toBe(1);
  });
  it("a failed lookup is an error, and is not cached", async () => {
    const { secret, record } = minted();
    const h = house([record]);
    h.answers(async () => Promise.reject(new Error("disk")));
    await expect(h.keys.find(secret)).rejects.toThrow("disk");
    h.answers(async (found) => found);
    expect(await h.keys.find(secret)).toBe(record);
  });
  it("a flood of unknown keys evicts no known key", async () => {
    const { secret, record } = minted();
    const h = house([record]);
    await h.keys.find(secret);
    for (let i = 0; i < 12_000; i++) await h.keys.find(`invented-${i}`);
    const before = h.asked.length;
    await h.keys.find(secret);
    expect(h.asked.length).toBe(before);
  });
  it("a clock that is set back keeps no key alive", async () => {
    const { secret, record } = minted();
    const h = house([record]);
    await h.keys.find(secret);
    h.pass(-3_600_000);
    await h.keys.find(secret);
    expect(h.asked.length).toBe(2);
  });
});
