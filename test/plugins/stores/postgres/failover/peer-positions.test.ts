// Reports of a gateway about another one whose row went back: none while that one may send it
// again, and one, with its numbers, when no gateway has.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { insertNode } from "../../../../../plugins/stores/postgres/membership/heartbeat.ts";
import { PeerPositions } from "../../../../../plugins/stores/postgres/membership/peer-positions.ts";
import type { RunSql } from "../../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { askAt, makePostgres } from "../../postgres-under-test.ts";

describe.skipIf(!hasPostgres())("heads of other gateways", () => {
  let server: Postgres;
  let url: string;
  let by: ReturnType<typeof askAt>;
  let heads: PeerPositions;
  let own: number;
  let other: number;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
    by = askAt(url);
  });
  afterAll(async () => {
    await by?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });
  const ask: RunSql = async (question) => by.question(question);
  const news = () => heads.check(ask, own);
  const joined = (id: string) => insertNode(ask, "tollgate", id, undefined, 60_000);
  const set = (what: string) => by.ask(`UPDATE tollgate.node SET ${what} WHERE epoch = ${other}`);
  beforeEach(async () => {
    const made = await makePostgres(url);
    await made.store.open({ instance: "makes the tables" });
    await made.dispose();
    heads = new PeerPositions("tollgate");
    own = await joined("own");
    other = await joined("other");
    await set("n = 7");
    expect(await news()).toEqual([]);
    await set("n = 9");
    expect(await news()).toEqual([]);
  });

  it("report lost entries once, from the first number to the last, if the other gateway had time and sent nothing", async () => {
    await set("n = 4");
    expect(await news()).toEqual([]);
    expect(await news()).toEqual([{ type: "rows_lost", instance: "other", from: 5, to: 9 }]);
    expect(await news()).toEqual([]);
    expect(await news()).toEqual([]);
  });

  it("report a gateway whose entries are all gone", async () => {
    await by.ask(`DELETE FROM tollgate.node WHERE epoch = ${other}`);
    await news();
    expect(await news()).toEqual([{ type: "rows_lost", instance: "other", from: 1, to: 9 }]);
  });

  it("do not report a live gateway that sends them again, however long it takes", async () => {
    await set("n = 4");
    for (let n = 4; n <= 9; n++) {
      await set(`n = ${n}, last_heartbeat = last_heartbeat + interval '1 second'`);
      expect(await news()).toEqual([]);
    }
    await set("n = 20");
    expect(await news()).toEqual([]);
    await set("n = 19");
    await news();
    expect(await news()).toEqual([{ type: "rows_lost", instance: "other", from: 20, to: 20 }]);
  });

  it("do not report one that returned under another number, or whose directory another process replayed", async () => {
    await set("n = 4");
    await news();
    await joined("other");
    expect(await news()).toEqual([]);
    expect(await news()).toEqual([]);
  });

  it("forget a gateway that left, after one check", async () => {
    await set("n = 12, state = 'left'");
    expect(await news()).toEqual([]);
    await set("n = 3");
    await news();
    expect(await news()).toEqual([]);
  });

  it("do not include the own gateway", async () => {
    await by.ask(`UPDATE tollgate.node SET n = 5 WHERE epoch = ${own}`);
    await news();
    await by.ask(`UPDATE tollgate.node SET n = 1 WHERE epoch = ${own}`);
    await news();
    expect(await news()).toEqual([]);
  });
});
