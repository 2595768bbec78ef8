import { generateKeyPairSync } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatPublicKey,
  openDocument,
  signDocument,
  type PriceDocument,
} from "../../../src/catalog/prices/price-document.ts";
import {
  acceptHeld,
  adoptDocument,
  bookFactsAt,
  bookPriceAt,
  emptyBook,
  nextMoment,
  type PriceBook,
} from "../../../src/catalog/prices/price-book.ts";
import { compareRates } from "../../../src/catalog/prices/price-change.ts";
import { getFault } from "../../../src/model/error.ts";
import type { Price, PriceLine } from "../../../src/model/facts.ts";
import { priceHash } from "../../../src/money/price.ts";

const newKey = () =>
  generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;
const PRIVATE = newKey();
const KEY = formatPublicKey(PRIVATE);
const NOW = Date.parse("2026-11-29T12:00:00Z");
const DAY_MS = 86_400_000;

const tokens = (input: string, output = "10"): Price => ({
  lines: [
    { unit: "input", usd: input, per: 1_000_000 },
    { unit: "output", usd: output, per: 1_000_000 },
  ],
});
const text = (version: number, models: readonly object[], more: object = {}): string =>
  JSON.stringify({
    version,
    issued: "2026-11-29T06:00:00Z",
    sources: { vendor: { url: "https://vendor.example/pricing", retrieved: "2026-11-29" } },
    providers: { openai: models },
    ...more,
  });
const model = (name: string, ...prices: object[]) => ({ model: name, operation: "chat", prices });
const open = (version: number, ...models: readonly object[]): PriceDocument =>
  openDocument(signDocument(text(version, models), [PRIVATE]), KEY, NOW);
const options = { now: NOW, maxChangePercent: 50, priceOf: () => undefined };
const adopt = (book: PriceBook, document: PriceDocument, more: Partial<typeof options> = {}) =>
  adoptDocument(book, document, { ...options, ...more });
const inputOf = (book: PriceBook, at: number, name = "gpt-6") =>
  bookPriceAt(book, "openai", name, at)?.price.lines[0]!.usd;

describe("a price document", () => {
  it("is read only with a signature of the key, over its exact bytes", () => {
    const file = signDocument(text(1, [model("gpt-6", { price: tokens("2") })]), [PRIVATE]);
    expect(openDocument(file, KEY, NOW).version).toBe(1);
    fc.assert(
      fc.property(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 }), (at, by) => {
        const changed = Buffer.from(file);
        changed[at] = changed[at]! ^ by;
        // Base64 has spare bits, and spaces separate signatures: only a change of the content counts.
        let read: PriceDocument | undefined;
        try {
          read = openDocument(changed, KEY, NOW);
        } catch (error) {
          expect(getFault(error)?.kind).toBe("invalid");
        }
        if (read) expect(read.digest).toBe(openDocument(file, KEY, NOW).digest);
      }),
    );
    expect(() => openDocument(file, formatPublicKey(newKey()), NOW)).toThrow(
      /not signed with the configured key/,
    );
    expect(() => openDocument(Buffer.alloc(0), KEY, NOW)).toThrow(/does not begin with/);
  });

  it("may have signatures of several keys, so that a publisher can change its key", () => {
    const next = newKey();
    const file = signDocument(text(1, []), [PRIVATE, next]);
    expect(openDocument(file, KEY, NOW).version).toBe(1);
    expect(openDocument(file, formatPublicKey(next), NOW).version).toBe(1);
  });

  it.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["no version", text(0, [])],
    ["a fractional version", text(1.5, [])],
    ["no date", text(1, [], { issued: "yesterday" })],
    ["a date in the future", text(1, [], { issued: "2027-11-29T06:00:00Z" })],
    ["models that are no list", text(1, [], { providers: { openai: {} } })],
    ["a model without a name", text(1, [{ operation: "chat" }])],
    ["a model twice", text(1, [model("a"), model("a")])],
    ["a price without lines", text(1, [model("a", { price: {} })])],
    [
      "a price with an unknown unit",
      text(1, [model("a", { price: { lines: [{ unit: "x", usd: "1", per: 1 }] } })]),
    ],
    [
      "a price as a float",
      text(1, [model("a", { price: { lines: [{ unit: "input", usd: 1, per: 1_000_000 }] } })]),
    ],
    ["a negative price", text(1, [model("a", { price: tokens("-1") })])],
    ["an absurd price", text(1, [model("a", { price: tokens("50000.01") })])],
    [
      "an absurd price per single token",
      text(1, [model("a", { price: { lines: [{ unit: "input", usd: "0.06", per: 1 }] } })]),
    ],
    [
      "absurd multipliers",
      text(1, [
        model("a", {
          price: {
            ...tokens("1"),
            multipliers: [
              { when: { region: "eu" }, by: "11" },
              { when: { speed: "fast" }, by: "10" },
            ],
          },
        }),
      ]),
    ],
    [
      "more tiers than a price has",
      text(1, [
        model("a", {
          price: {
            ...tokens("1"),
            tiers: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`t${i}`, []])),
          },
        }),
      ]),
    ],
    [
      "rows that are nested too deep",
      text(1, [model("a", { price: "nested" })]).replace(
        '"nested"',
        `${'{"lines":[],"otherwise":'.repeat(20_000)}{"lines":[]}${"}".repeat(20_000)}`,
      ),
    ],
    ["sources of figures that are no lists", text(1, [{ ...model("a"), figures: { input: "x" } }])],
    [
      "a start that is no moment",
      text(1, [model("a", { from: "2026-12-01", price: tokens("1") })]),
    ],
    [
      "starts out of order",
      text(1, [
        model(
          "a",
          { from: "2026-12-02T00:00:00Z", price: tokens("1") },
          { from: "2026-12-01T00:00:00Z", price: tokens("2") },
        ),
      ]),
    ],
    ["a source without an address", text(1, [], { sources: { a: {} } })],
    ...["__proto__", "constructor", "toString"].flatMap((name) => [
      [`the provider ${name}`, text(1, [model("a")]).replace('"openai"', `"${name}"`)],
      [`the model ${name}`, text(1, [model(name)])],
    ]),
  ])("with %s is rejected", (_, content) => {
    expect(() => openDocument(signDocument(content, [PRIVATE]), KEY, NOW)).toThrow(
      /rejected|not usable/,
    );
  });

  it("cannot state data policies, protocols, rejected fields, or the model whose price applies", () => {
    const policy = {
      dataPolicy: { retention: { kind: "zero" } },
      protocols: ["messages"],
      rejectedFields: ["n"],
      pricedAs: "gpt-6-nano",
    };
    const { book } = adopt(
      emptyBook(KEY),
      open(1, { ...model("gpt-6"), ...policy, retires: "2027-01-01" }),
    );
    expect(bookFactsAt(book, "openai", NOW)).toEqual([
      { model: "gpt-6", operation: "chat", retires: "2027-01-01" },
    ]);
  });
});

describe("the price book", () => {
  it("applies a price from the moment on which it was accepted, or from a later one that the document states", () => {
    const { book } = adopt(
      emptyBook(KEY),
      open(
        1,
        model(
          "gpt-6",
          { from: "2026-11-01T00:00:00Z", price: tokens("2") },
          { from: "2026-12-01T00:00:00Z", price: tokens("2.5") },
        ),
      ),
    );
    expect(inputOf(book, NOW - 1)).toBeUndefined();
    expect(inputOf(book, NOW)).toBe("2");
    const december = Date.parse("2026-12-01T00:00:00Z");
    expect(nextMoment(book, NOW)).toBe(december);
    expect(inputOf(book, december - 1)).toBe("2");
    expect(inputOf(book, december)).toBe("2.5");
    expect(nextMoment(book, december)).toBeUndefined();
  });

  it("keeps models, prices, and facts that a newer document omits", () => {
    const first = adopt(
      emptyBook(KEY),
      open(
        1,
        { ...model("gpt-6", { price: tokens("2") }), name: "GPT-6", limits: { context: 9 } },
        model("gpt-5"),
      ),
    );
    const { book } = adopt(first.book, open(2, { ...model("gpt-6"), limits: { output: 3 } }));
    expect(bookFactsAt(book, "openai", NOW)).toEqual([
      {
        model: "gpt-6",
        operation: "chat",
        name: "GPT-6",
        limits: { context: 9, output: 3 },
        price: tokens("2"),
      },
      { model: "gpt-5", operation: "chat" },
    ]);
  });

  it("rejects an older document, and another one of the same version", () => {
    const { book } = adopt(emptyBook(KEY), open(5, model("gpt-6", { price: tokens("2") })));
    expect(() => adopt(book, open(4, model("gpt-6", { price: tokens("1") })))).toThrow(
      /version 5 was already accepted/,
    );
    expect(() => adopt(book, open(5, model("gpt-6", { price: tokens("1") })))).toThrow(
      /with other content/,
    );
    expect(adopt(book, open(5, model("gpt-6", { price: tokens("2") }))).book).toBe(book);
  });

  it.each([
    ["beyond the bound", tokens("3.01"), "held"],
    ["within the bound", tokens("3"), "changed"],
    ["down beyond the bound", tokens("0.99"), "held"],
    ["to zero", tokens("0"), "held"],
    ["that loses a rate", { lines: [tokens("2").lines[0]!] }, "held"],
    [
      "that gains a rate",
      {
        lines: [
          ...tokens("2").lines,
          { unit: "cache_read", usd: "0.2", per: 1_000_000 } as PriceLine,
        ],
      },
      "changed",
    ],
    [
      "of a tier",
      {
        ...tokens("2"),
        tiers: { batch: [{ unit: "input", usd: "1", per: 1_000_000 } as PriceLine] },
      },
      "changed",
    ],
  ])("holds or applies a change %s", (_, price, effect) => {
    const first = adopt(emptyBook(KEY), open(1, model("gpt-6", { price: tokens("2") })));
    const { book, changes } = adopt(first.book, open(2, model("gpt-6", { price })), {
      now: NOW + 1,
    });
    expect(changes.map((change) => change.effect)).toEqual([effect]);
    expect(priceHash(bookPriceAt(book, "openai", "gpt-6", NOW + 1)!.price)).toBe(
      priceHash(effect === "held" ? tokens("2") : price),
    );
    expect(book.held.length).toBe(effect === "held" ? 1 : 0);
  });

  it("compares the first price of a model with the built-in one", () => {
    const { book, changes } = adopt(
      emptyBook(KEY),
      open(1, model("gpt-6", { price: tokens("200") })),
      {
        priceOf: () => tokens("2"),
      } as object,
    );
    expect(changes).toMatchObject([{ effect: "held", before: tokens("2") }]);
    expect(bookPriceAt(book, "openai", "gpt-6", NOW)).toBeUndefined();
  });

  it("applies a held price from the moment of its acceptance, and drops it if a newer document states another one", () => {
    const first = adopt(emptyBook(KEY), open(1, model("gpt-6", { price: tokens("2") })));
    const held = adopt(first.book, open(2, model("gpt-6", { price: tokens("20") })));
    const accepted = acceptHeld(held.book, NOW + DAY_MS, () => true);
    expect(accepted.held).toEqual([]);
    expect(inputOf(accepted, NOW + DAY_MS - 1)).toBe("2");
    expect(inputOf(accepted, NOW + DAY_MS)).toBe("20");
    const withdrawn = adopt(held.book, open(3, model("gpt-6", { price: tokens("2.1") })));
    expect(withdrawn.book.held).toEqual([]);
    expect(inputOf(withdrawn.book, NOW)).toBe("2.1");
  });

  it("keeps an accepted price of a later date that a newer document states again", () => {
    const stated = model(
      "gpt-6",
      { price: tokens("2") },
      { from: "2026-12-05T00:00:00Z", price: tokens("20") },
    );
    const held = adopt(emptyBook(KEY), open(1, stated)).book;
    expect(held.held.length).toBe(1);
    const accepted = acceptHeld(held, NOW, () => true);
    const next = adopt(accepted, open(2, stated), { now: NOW + DAY_MS });
    expect([next.book.held, next.changes]).toEqual([[], []]);
    expect(inputOf(next.book, Date.parse("2026-12-05T00:00:00Z"))).toBe("20");
  });

  it("accepts the largest rate of a token, and of another unit, however the rate is written", () => {
    const prices: readonly PriceLine[] = [
      { unit: "input", usd: "0.05", per: 1 },
      { unit: "output", usd: "50000", per: 1_000_000 },
      { unit: "images", usd: "1000", per: 1 },
      { unit: "characters", usd: "1000000000", per: 1_000_000 },
    ];
    for (const line of prices)
      expect(open(1, model("a", { price: { lines: [line] } })).version).toBe(1);
  });

  it("keeps the prices of 400 days, and the price that applied before them", () => {
    let book = emptyBook(KEY);
    for (let i = 0; i < 5; i++)
      book = adopt(book, open(i + 1, model("gpt-6", { price: tokens(`2.${i}`) })), {
        now: NOW + i * 150 * DAY_MS,
      }).book;
    const kept = book.models["openai"]!["gpt-6"]!.prices;
    expect(kept.map(({ price }) => price.lines[0]!.usd)).toEqual(["2.1", "2.2", "2.3", "2.4"]);
    expect(inputOf(book, NOW + 200 * DAY_MS)).toBe("2.1");
  });

  it("keeps the held prices of other models", () => {
    const first = adopt(
      emptyBook(KEY),
      open(1, model("a", { price: tokens("2") }), model("b", { price: tokens("2") })),
    );
    const held = adopt(
      first.book,
      open(2, model("a", { price: tokens("20") }), model("b", { price: tokens("30") })),
    );
    const next = adopt(held.book, open(3, model("a", { price: tokens("2") })));
    expect(next.book.held.map((each) => each.model)).toEqual(["b"]);
  });

  it("law: no document and no acceptance changes a price of the past", () => {
    const step = fc.record({
      wait: fc.integer({ min: 0, max: 20 * DAY_MS }),
      accept: fc.boolean(),
      prices: fc.uniqueArray(
        fc.record({ day: fc.integer({ min: 0, max: 60 }), usd: fc.integer({ min: 0, max: 9 }) }),
        { selector: ({ day }) => day, maxLength: 4 },
      ),
      name: fc.constantFrom("a", "b"),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        let now = NOW;
        let book = emptyBook(KEY);
        const seen: {
          readonly at: number;
          readonly name: string;
          readonly usd: string | undefined;
        }[] = [];
        for (const [i, { wait, accept, prices, name }] of steps.entries()) {
          const stated = prices
            .toSorted((x, y) => x.day - y.day)
            .map(({ day, usd }) => ({
              ...(day > 0 && { from: new Date(NOW + (day - 20) * DAY_MS).toISOString() }),
              price: tokens(String(usd)),
            }));
          book = adopt(book, open(i + 1, model(name, ...stated)), { now }).book;
          if (accept) book = acceptHeld(book, now, () => true);
          for (const each of seen) expect(inputOf(book, each.at, each.name)).toBe(each.usd);
          for (const each of ["a", "b"])
            for (const at of [now, now + wait / 2])
              seen.push({ at, name: each, usd: inputOf(book, at, each) });
          now += wait + 1;
        }
      }),
    );
  });
});

describe("a comparison of prices", () => {
  it("lists each rate that differs, by tier, bracket, variant, and multiplier", () => {
    const line = (unit: PriceLine["unit"], usd: string): PriceLine => ({
      unit,
      usd,
      per: 1_000_000,
    });
    const before: Price = {
      lines: [line("input", "2"), line("output", "8")],
      over: [{ input: 200_000, lines: [line("input", "4")] }],
      tiers: { batch: [line("input", "1")] },
      multipliers: [{ when: { region: "eu" }, by: "1.1" }],
    };
    const after: Price = {
      ...before,
      over: [{ input: 200_000, lines: [line("input", "5")] }],
      tiers: { batch: [line("input", "1.5")] },
      multipliers: [{ when: { region: "eu" }, by: "1.2" }],
    };
    const changes = Object.fromEntries(
      compareRates(before, after, NOW).map(({ figure, percent }) => [figure, percent]),
    );
    expect(changes).toEqual({
      "input, over 200000": 25,
      "input, tier batch": 50,
      "input, tier batch, over 200000": 87.5,
      "input, region eu": 9.1,
      "output, region eu": 9.1,
    });
  });

  it("sees a price that changes at a later date or at certain hours", () => {
    const later: Price = {
      ...tokens("2"),
      until: "2026-12-31",
      otherwise: { ...tokens("20"), from: "2027-01-01" },
    };
    expect(compareRates(tokens("2"), later, NOW)).toMatchObject([
      { figure: "input", percent: 900 },
    ]);
    const night: Price = {
      ...tokens("1"),
      hours: { from: "16:30", to: "00:30" },
      otherwise: tokens("2"),
    };
    expect(compareRates(tokens("2"), night, NOW)).toMatchObject([{ figure: "input", percent: 50 }]);
  });
});
