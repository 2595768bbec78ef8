import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { formatPublicKey, signDocument } from "../../../src/catalog/prices/price-document.ts";
import { PriceOverlay } from "../../../src/catalog/prices/price-overlay.ts";
import { builtInPrice, PriceFeed } from "../../../src/runtime/services/price-feed.ts";
import { until } from "../../kit/wait.ts";

it("compares with the built-in price of the model whose price applies", () => {
  const price = { lines: [{ unit: "input", usd: "1", per: 1_000_000 }] } as const;
  const models = [
    { model: "a", operation: "chat", pricedAs: "b" },
    { model: "b", operation: "chat", price },
    { model: "c", operation: "chat", pricedAs: "c" },
  ];
  const definition = { name: "openai", facts: { asOf: "2026-11-01", models } };
  const config = { providers: new Map([["main", { definition }]]) } as never;
  expect(["a", "b", "c", "d"].map((model) => builtInPrice(config, "openai", model))).toEqual([
    price,
    price,
    undefined,
    undefined,
  ]);
});

it("continues after a reload with the same settings during a read", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-prices-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const key = generateKeyPairSync("ed25519").privateKey.export({
    type: "pkcs8",
    format: "pem",
  }) as string;
  const publish = (version: number) =>
    writeFileSync(
      join(dir, "prices.json"),
      signDocument(
        JSON.stringify({
          version,
          issued: "2026-11-29T06:00:00Z",
          sources: { vendor: { url: "https://vendor.example/pricing", retrieved: "2026-11-29" } },
          providers: {},
        }),
        [key],
      ),
    );
  const settings = () => ({
    prices: { from: "prices.json", everyMs: 5, key: formatPublicKey(key), maxChange: 50 },
    file: join(dir, "gateway.yaml"),
    providers: new Map(),
  });
  const overlay = new PriceOverlay();
  let isReloaded = false;
  const feed = new PriceFeed({
    overlay,
    log: { info() {}, warn() {} },
    dir: join(dir, "state"),
    proxy: undefined,
    // Called during a read.
    now() {
      if (!isReloaded) {
        isReloaded = true;
        void feed.configure(settings());
      }
      return Date.parse("2026-11-29T12:00:00Z");
    },
  });
  using _ = feed;
  publish(1);
  await feed.configure(settings());
  await until(() => overlay.book?.version === 1);
  publish(2);
  await until(() => overlay.book?.version === 2);
  expect(isReloaded).toBe(true);
});

it("applies the decision of an operator at another gateway on the same store", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-prices-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const key = generateKeyPairSync("ed25519").privateKey.export({
    type: "pkcs8",
    format: "pem",
  }) as string;
  const publish = (version: number, usd: Record<string, string>) =>
    writeFileSync(
      join(dir, "prices.json"),
      signDocument(
        JSON.stringify({
          version,
          issued: "2026-11-29T06:00:00Z",
          providers: {
            openai: Object.entries(usd).map(([model, input]) => ({
              model,
              operation: "chat",
              prices: [{ price: { lines: [{ unit: "input", usd: input, per: 1_000_000 }] } }],
            })),
          },
        }),
        [key],
      ),
    );
  const values = new Map<string, Uint8Array>();
  const shared = async (name: string, make: () => Promise<Uint8Array>) => {
    if (!values.has(name)) values.set(name, await make());
    return values.get(name)!;
  };
  let now = Date.parse("2026-11-29T12:00:00Z");
  const start = async (name: string) => {
    const overlay = new PriceOverlay(() => now);
    const feed = new PriceFeed({
      overlay,
      log: { info() {}, warn() {} },
      dir: join(dir, name),
      proxy: undefined,
      shared,
      now: () => now,
    });
    onTestFinished(() => {
      feed[Symbol.dispose]();
      overlay[Symbol.dispose]();
    });
    await feed.configure({
      prices: {
        from: "prices.json",
        everyMs: 86_400_000,
        key: formatPublicKey(key),
        maxChange: 50,
      },
      file: join(dir, "gateway.yaml"),
      providers: new Map(),
    } as never);
    await feed.refreshNow();
    const input = (model: string) =>
      overlay.of("openai")?.models.find((each) => each.model === model)?.price as
        | { readonly lines: readonly { readonly usd: string }[] }
        | undefined;
    return { feed, usd: (model: string) => input(model)?.lines[0]!.usd };
  };
  publish(1, { a: "1", b: "1" });
  const [one, other] = [await start("one"), await start("other")];
  publish(2, { a: "5", b: "7" });
  await one.feed.refreshNow();
  expect(one.feed.held.length).toBe(2);
  await one.feed.accept(({ model }) => model === "a");
  expect([one.usd("a"), one.usd("b")]).toEqual(["5", "1"]);
  // It reads the document after the decision.
  await other.feed.refreshNow();
  expect([other.usd("a"), other.usd("b")]).toEqual(["5", "1"]);
  // It has read the document before the decision.
  await other.feed.accept(({ model }) => model === "b");
  await one.feed.refreshNow();
  expect([one.usd("b"), one.feed.held.length]).toEqual(["7", 0]);
  // A decision is not valid forever.
  publish(3, { a: "1", b: "7" });
  await one.feed.refreshNow();
  await one.feed.accept(() => true);
  now += 31 * 86_400_000;
  publish(4, { a: "5", b: "7" });
  await one.feed.refreshNow();
  expect([one.usd("a"), one.feed.held.length]).toEqual(["1", 1]);
});
