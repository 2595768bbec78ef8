// Which connection to a provider a request gets, and when connections are closed, on a clock of the
// test's own.
import { describe, expect, it } from "vitest";
import {
  CONNECTION_TIMES,
  ConnectionPool,
  MAX_CONNECTIONS,
  type ConnectionRequest,
  type PooledConnection,
} from "../../../src/pipeline/upstream/connection-pool.ts";

const CREDENTIAL = {};
const MINUTE = 60_000;

function scene() {
  let now = 0;
  const pool = new ConnectionPool(CONNECTION_TIMES, () => now);
  const request = (of: Partial<ConnectionRequest> = {}): ConnectionRequest => ({
    key: "k",
    handshake: "h",
    lane: { connection: client, name: undefined },
    continues: undefined,
    ...of,
  });
  const opened = async (of: Partial<ConnectionRequest> = {}) => {
    const { key, handshake, lane } = request(of);
    const made = {
      use: { key, handshake },
      lane,
      session: { continuable: undefined as string | undefined },
      openedAt: now,
      idleSince: now,
      isIdle: true,
      isClosed: false,
      pings: 0,
      ping() {
        made.pings++;
      },
      close() {
        made.isClosed = true;
        made.isIdle = false;
        pool.remove(CREDENTIAL, made as unknown as PooledConnection);
      },
    };
    const got = await pool.open(CREDENTIAL, async () => made as unknown as PooledConnection);
    return got && made;
  };
  const find = (of?: Partial<ConnectionRequest>) => pool.find(CREDENTIAL, request(of));
  const pass = (ms: number) => {
    now += ms;
    pool.sweep();
  };
  return { pool, opened, find, pass };
}
const client = { isClosed: false };

describe("a request", () => {
  it("gets the connection of its lane, and not that of another one", async () => {
    const { opened, find } = scene();
    const a = await opened({ lane: { connection: client, name: "a" } });
    expect(find({ lane: { connection: client, name: "a" } })).toBe(a);
    expect(find({ lane: { connection: client, name: "b" } })).toBeUndefined();
    expect(find({ lane: { connection: { isClosed: false }, name: "a" } })).toBeUndefined();
  });

  it("gets the connection that holds what it continues, before that of its lane", async () => {
    const { opened, find } = scene();
    await opened();
    const b = (await opened({ lane: { connection: client, name: "b" } }))!;
    b.session.continuable = "resp_1";
    expect(find({ continues: "resp_1" })).toBe(b);
    b.isIdle = false;
    expect(find({ continues: "resp_1" })).not.toBe(b);
  });

  it("gets one that a closed client left, but only of its key and with its headers", async () => {
    const { opened, find } = scene();
    const left = { isClosed: false };
    const one = await opened({ lane: { connection: left, name: undefined } });
    expect(find()).toBeUndefined();
    left.isClosed = true;
    expect(find()).toBe(one);
    expect(find({ key: "other" })).toBeUndefined();
    expect(find({ handshake: "other" })).toBeUndefined();
  });

  it("gets no connection that is about to reach the provider's maximum age", async () => {
    const { opened, find, pass } = scene();
    const one = (await opened())!;
    for (let i = 0; i < 54; i++) {
      pass(MINUTE);
      one.idleSince += MINUTE;
    }
    expect(find()).toBe(one);
    one.isIdle = false;
    pass(MINUTE);
    one.isIdle = true;
    expect(find()).toBeUndefined();
  });
});

describe("a connection", () => {
  it("is closed after 5 minutes without a request, and not while a response runs", async () => {
    const { opened, pass, pool } = scene();
    const idle = (await opened())!;
    const busy = (await opened())!;
    busy.isIdle = false;
    pass(5 * MINUTE);
    expect(idle.isClosed).toBe(false);
    pass(1_000);
    expect(idle.isClosed).toBe(true);
    expect(busy.isClosed).toBe(false);
    expect(busy.pings).toBe(2);
    expect(pool.count).toBe(1);
  });

  it("makes room for another one if it is idle, the longest first", async () => {
    const { opened, pass, pool } = scene();
    const all = [];
    for (let i = 0; i < MAX_CONNECTIONS; i++) {
      all.push((await opened())!);
      pass(10);
    }
    all[0]!.isIdle = false;
    expect(await opened()).toBeDefined();
    expect(pool.count).toBe(MAX_CONNECTIONS);
    expect(all.map(({ isClosed }) => isClosed).indexOf(true)).toBe(1);
    for (const one of all) one.isIdle = false;
    const last = (await opened())!;
    last.isIdle = false;
    expect(await opened()).toBeUndefined();
  });

  it("is not opened for 5 s after the provider accepted none, and then twice as long", async () => {
    const { opened, pass, pool } = scene();
    for (const seconds of [5, 10, 20, 40, 80, 160, 300, 300]) {
      pool.suspend(CREDENTIAL);
      // A handshake that ran at the same time.
      pool.suspend(CREDENTIAL);
      pass(seconds * 1_000 - 1);
      expect(await opened()).toBeUndefined();
      pass(1);
    }
    expect(await opened()).toBeDefined();
    pool.suspend(CREDENTIAL);
    pass(5_000);
    expect(await opened()).toBeDefined();
  });

  it("is not closed to make room for a key with more connections", async () => {
    const { opened, pass } = scene();
    const other = (await opened({ key: "other" }))!;
    const all = [];
    for (let i = 1; i < MAX_CONNECTIONS; i++) {
      pass(10);
      all.push((await opened())!);
    }
    for (let i = 0; i < 3; i++) expect(await opened()).toBeDefined();
    expect(await opened({ key: "third" })).toBeDefined();
    expect(other.isClosed).toBe(false);
    expect(all.filter(({ isClosed }) => isClosed)).toEqual(all.slice(0, 4));
  });

  it("is closed with its generation, after its response", async () => {
    const { opened, pool } = scene();
    const idle = (await opened())!;
    const busy = (await opened())!;
    busy.isIdle = false;
    pool.close();
    expect([idle.isClosed, busy.isClosed]).toEqual([true, false]);
    pool.free(busy as unknown as PooledConnection);
    expect(busy.isClosed).toBe(true);
    expect(await opened()).toBeUndefined();
  });
});
