import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import * as fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { createCatalog } from "../../../src/catalog/catalog.ts";
import { createInMemoryModelLists } from "../../../src/catalog/model-lists.ts";
import {
  createListRefresher,
  refreshDelay,
  type Clock,
  type ListSource,
} from "../../../src/catalog/list-refresher.ts";
import { createConditionalFetch } from "../../../src/catalog/conditional-fetch.ts";

/** Time that a test moves, in the order of due timers. */
class Hand implements Clock {
  at = 1_000_000;
  #due: { at: number; call: () => void }[] = [];
  now = () => this.at;
  random = () => 0.5;
  after = (ms: number, call: () => void) => {
    const due = { at: this.at + ms, call };
    this.#due.push(due);
    return () => void (this.#due = this.#due.filter((d) => d !== due));
  };
  async pass(ms: number): Promise<void> {
    const until = this.at + ms;
    for (;;) {
      await settle();
      const [next] = this.#due.toSorted((a, b) => a.at - b.at);
      if (!next || next.at > until) break;
      this.#due = this.#due.filter((d) => d !== next);
      this.at = next.at;
      next.call();
    }
    this.at = until;
  }
}
const settle = () => new Promise((done) => setTimeout(done, 1));
const EVERY = 600_000;
const pace = { everyMs: EVERY, deadlineMs: 30_000 };

describe("the delay", () => {
  it("is within a tenth of the interval; after failures it doubles up to it", () => {
    const random = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.nat(50),
        fc.integer({ min: 1_000, max: 1e8 }),
        random,
        (failures, every, r) => {
          const wait = refreshDelay(failures, every, r);
          if (failures === 0) {
            expect(wait).toBeGreaterThanOrEqual(every * 0.9);
            expect(wait).toBeLessThanOrEqual(every * 1.1 + 1e-6);
          } else {
            expect(wait).toBeLessThanOrEqual(every);
            expect(wait).toBeGreaterThanOrEqual(Math.min(every, 5_000) / 2);
            expect(refreshDelay(failures + 1, every, r)).toBeGreaterThanOrEqual(wait);
          }
        },
      ),
    );
  });
});

describe("refreshing", () => {
  const line = (
    models: ListSource["fetchModels"],
    provider = "p",
    credential = "c",
  ): ListSource => ({
    provider,
    credential,
    fetchModels: models,
  });
  const list = (...names: string[]) => names.map((model) => ({ model, operation: "chat" }));

  it("starts immediately, then by interval; new models appear and removed ones disappear within it", async () => {
    const clock = new Hand();
    const lists = createInMemoryModelLists();
    const catalog = createCatalog({ lists, providers: new Map([["p", { hasLiveList: true }]]) });
    let upstream = list("a", "b");
    const refresh = createListRefresher(lists, { times: pace, clock });
    refresh.follow([line(async () => upstream)]);
    await clock.pass(0);
    expect(catalog.list().map((l) => l.id)).toEqual(["p/a", "p/b"]);
    upstream = list("b", "c");
    await clock.pass(EVERY * 1.1);
    expect(catalog.list().map((l) => l.id)).toEqual(["p/b", "p/c"]);
    refresh[Symbol.dispose]();
  });

  it("a failure keeps the old list, is reported, and is retried with growing delays", async () => {
    const clock = new Hand();
    const lists = createInMemoryModelLists();
    let works = true;
    const asked: number[] = [];
    const told: string[] = [];
    const refresh = createListRefresher(lists, {
      times: pace,
      clock,
      onStatusChange: (s) => told.push(s.lastError?.message ?? "works"),
    });
    refresh.follow([
      line(async () => {
        asked.push(clock.at);
        return works ? list("a") : Promise.reject(new Error("connection refused"));
      }),
    ]);
    await clock.pass(0);
    works = false;
    await clock.pass(EVERY);
    const failedAt = asked[1]!;
    await clock.pass(60_000);
    expect(asked.slice(2).map((at) => at - failedAt)).toEqual([3_750, 11_250, 26_250, 56_250]);
    expect(lists.of("p")![0]!.models).toHaveLength(1);
    expect(refresh.status()).toMatchObject([
      {
        provider: "p",
        credential: "c",
        modelCount: 1,
        lastSuccessAt: asked[0],
        ageMs: clock.at - asked[0]!,
        failures: 5,
        lastError: { message: "connection refused" },
      },
    ]);
    works = true;
    await refresh.refreshNow();
    expect(refresh.status()).toMatchObject([{ failures: 0, lastError: undefined, ageMs: 0 }]);
    expect(told).toEqual(["connection refused", "works"]);
    refresh[Symbol.dispose]();
  });

  it("an invalid list is a failure like any other", async () => {
    const clock = new Hand();
    const lists = createInMemoryModelLists();
    let answer: unknown = list("a");
    const refresh = createListRefresher(lists, { times: pace, clock });
    refresh.follow([line(async () => answer)]);
    await clock.pass(0);
    answer = { error: "sorry" };
    await refresh.refreshNow("p");
    expect(refresh.status()[0]).toMatchObject({ modelCount: 1, failures: 1 });
    expect(refresh.status()[0]!.lastError!.message).toMatch(/not usable/);
    refresh[Symbol.dispose]();
  });

  it("an upstream that hangs reaches the timeout, even if the code ignores the signal", async () => {
    const clock = new Hand();
    const refresh = createListRefresher(createInMemoryModelLists(), { times: pace, clock });
    let signal: AbortSignal | undefined;
    refresh.follow([
      line((s) => {
        signal = s;
        return new Promise(() => {});
      }),
    ]);
    await clock.pass(30_000);
    expect(signal!.aborted).toBe(true);
    expect(refresh.status()[0]).toMatchObject({ failures: 1, modelCount: undefined });
    refresh[Symbol.dispose]();
  });

  it("never sends two requests at the same time", async () => {
    const clock = new Hand();
    let open = 0;
    let most = 0;
    const refresh = createListRefresher(createInMemoryModelLists(), { times: pace, clock });
    refresh.follow([
      line(async () => {
        most = Math.max(most, ++open);
        await settle();
        open--;
        return list("a");
      }),
    ]);
    await Promise.all([
      refresh.refreshNow(),
      refresh.refreshNow(),
      refresh.refreshNow("p"),
      refresh.refreshNow("other"),
    ]);
    expect(most).toBe(1);
    refresh[Symbol.dispose]();
  });

  it("a reload keeps the timing of remaining sources and ends the others", async () => {
    const clock = new Hand();
    const lists = createInMemoryModelLists();
    const asked: string[] = [];
    const ask = (name: string) =>
      line(
        async () => {
          asked.push(name);
          return list(name);
        },
        "p",
        name.slice(0, 1),
      );
    const refresh = createListRefresher(lists, { times: pace, clock });
    refresh.follow([ask("a1"), ask("b1")]);
    await clock.pass(1_000);
    refresh.follow([ask("a2"), ask("c1")]);
    await clock.pass(1_000);
    expect(asked).toEqual(["a1", "b1", "c1"]);
    expect(lists.of("p")!.map((h) => h.credential)).toEqual(["a", "c"]);
    await clock.pass(EVERY);
    expect(asked.slice(3).sort()).toEqual(["a2", "c1"]);
    expect(refresh.status().map((s) => s.credential)).toEqual(["a", "c"]);
    refresh[Symbol.dispose]();
    await clock.pass(EVERY * 5);
    expect(asked).toHaveLength(5);
  });

  it("a shorter interval applies immediately after a reload, a longer one from the next refresh", async () => {
    const clock = new Hand();
    let asked = 0;
    const only = [
      line(async () => {
        asked++;
        return list("a");
      }),
    ];
    const refresh = createListRefresher(createInMemoryModelLists(), { times: pace, clock });
    refresh.follow(only);
    await clock.pass(0);
    refresh.follow(only, EVERY * 100);
    await clock.pass(EVERY * 1.1);
    expect(asked).toBe(2);
    await clock.pass(EVERY * 5);
    expect(asked).toBe(2);
    refresh.follow(only, EVERY / 10);
    await clock.pass(EVERY * 0.11);
    expect(asked).toBe(3);
    await clock.pass(EVERY * 0.11);
    expect(asked).toBe(4);
    refresh[Symbol.dispose]();
  });

  it("a response for a removed source is ignored", async () => {
    const clock = new Hand();
    const lists = createInMemoryModelLists();
    let answer: (models: unknown) => void = () => {};
    const refresh = createListRefresher(lists, { times: pace, clock });
    refresh.follow([line(() => new Promise((r) => (answer = r)))]);
    await clock.pass(0);
    refresh.follow([]);
    answer(list("late"));
    await clock.pass(0);
    expect(lists.of("p")).toBeUndefined();
  });
});

describe("conditional requests", () => {
  const servers: Server[] = [];
  const serve = async (listener: RequestListener): Promise<string> => {
    const server = createServer(listener);
    servers.push(server);
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/models`;
  };
  afterAll(() => servers.forEach((server) => server.close().closeAllConnections()));
  const plain = (url: string | URL, init: object = {}) => fetch(url, init);

  it("send the ETag, and return the unchanged list again", async () => {
    let body = '{"data":[1]}';
    const seen: (string | undefined)[] = [];
    const url = await serve((asked, answer) => {
      seen.push(asked.headers["if-none-match"]);
      const etag = `"${body.length}"`;
      if (asked.headers["if-none-match"] === etag) answer.writeHead(304).end();
      else answer.writeHead(200, { etag, "content-type": "application/json" }).end(body);
    });
    // Each request has its own fetch and timeout. The cache belongs to the list.
    const through = createConditionalFetch();
    const get = () => through(plain)(url).then((answer) => answer.json());
    for (let i = 0; i < 3; i++) expect(await get()).toEqual({ data: [1] });
    body = '{"data":[1,2]}';
    expect(await get()).toEqual({ data: [1, 2] });
    expect(await get()).toEqual({ data: [1, 2] });
    expect(seen).toEqual([undefined, '"12"', '"12"', '"12"', '"14"']);
  });

  it("errors are passed on, and POST responses are never stored", async () => {
    const url = await serve((asked, answer) =>
      answer.writeHead(asked.method === "POST" ? 200 : 503, { etag: '"x"' }).end("down"),
    );
    const get = createConditionalFetch()(plain);
    for (let i = 0; i < 2; i++) {
      const answer = await get(url);
      expect([answer.status, await answer.text()]).toEqual([503, "down"]);
      expect((await get(url, { method: "POST", body: "{}" })).status).toBe(200);
    }
  });
});
