// Expiring tokens, with a clock as an argument.
import { describe, expect, it } from "vitest";
import { AccountTokens, type MintedToken } from "tollgate/plugin";

const HOUR = 3_600_000;

function bench(forMs = HOUR) {
  let now = 1_000;
  const asked: ((given: string | Error) => void)[] = [];
  const mint = () =>
    new Promise<MintedToken>((resolve, reject) => {
      asked.push((given) =>
        typeof given === "string" ? resolve({ token: given, ttlMs: forMs }) : reject(given),
      );
    });
  const tokens = new AccountTokens(() => now);
  return {
    tokens,
    mint,
    asked,
    pass: (ms: number) => (now += ms),
    get: () => tokens.get("a", mint),
  };
}

describe("tokens of an account", () => {
  it("are fetched once for concurrent callers, and cached", async () => {
    const { get, asked } = bench();
    const all = [get(), get(), get()];
    asked[0]!("one");
    expect(await Promise.all(all)).toEqual(["one", "one", "one"]);
    expect(get()).toBe("one");
    expect(asked).toHaveLength(1);
  });

  it("differ between accounts", async () => {
    const { tokens, mint, asked } = bench();
    const both = [tokens.get("a", mint), tokens.get("b", mint)];
    asked[0]!("of a");
    asked[1]!("of b");
    expect(await Promise.all(both)).toEqual(["of a", "of b"]);
  });

  it.each([
    ["an hour", HOUR, 300_000],
    ["four minutes", 240_000, 24_000],
  ])(
    "of %s are used while the next one is fetched, and not after their expiry",
    async (_, life, early) => {
      const { get, asked, pass } = bench(life);
      const first = get();
      asked[0]!("one");
      await first;
      pass(life - early - 1);
      expect(get()).toBe("one");
      expect(asked).toHaveLength(1);
      pass(1);
      expect([get(), get()]).toEqual(["one", "one"]);
      expect(asked).toHaveLength(2);
      pass(early);
      const second = get();
      expect(second).toBeInstanceOf(Promise);
      asked[1]!("two");
      expect(await second).toBe("two");
      expect(get()).toBe("two");
    },
  );

  it("whose fetch failed are fetched by the next caller; a valid one stays in use", async () => {
    const { get, asked, pass } = bench();
    const first = get();
    asked[0]!(new Error("away"));
    await expect(first).rejects.toThrow("away");
    const second = get();
    asked[1]!("one");
    expect(await second).toBe("one");
    pass(HOUR - 1_000);
    expect(get()).toBe("one");
    asked[2]!(new Error("away again"));
    await new Promise(setImmediate);
    expect(get()).toBe("one");
    expect(asked).toHaveLength(4);
  });

  it("that are rejected as expired are replaced, once for all callers", async () => {
    const { tokens, mint, get, asked } = bench();
    const first = get();
    asked[0]!("one");
    await first;
    const others = [tokens.renew("a", mint), tokens.renew("a", mint)];
    asked[1]!("two");
    expect(await Promise.all(others)).toEqual(["two", "two"]);
    expect(get()).toBe("two");
    expect(asked).toHaveLength(2);
  });
});
