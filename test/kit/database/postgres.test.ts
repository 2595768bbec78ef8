// Tests the database that other tests use.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  hasPgBouncer,
  hasPostgres,
  startPgBouncer,
  startPostgres,
  type Postgres,
} from "./postgres.ts";
import { startTcpProxy } from "./tcp-proxy.ts";
import { installTestClock } from "../clock.ts";
import { turnEventLoop, until } from "../wait.ts";

describe.skipIf(!hasPostgres())("a PostgreSQL of its own", () => {
  let postgres: Postgres;
  let url: string;
  const rows = (at = url) => postgres.sql(at, "SELECT count(*) FROM t");
  beforeAll(async () => {
    postgres = await startPostgres();
    url = await postgres.database();
    await postgres.sql(url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
  });
  afterAll(() => postgres?.[Symbol.asyncDispose]());

  it("keeps what it acknowledged, after a kill and after a stop", async () => {
    await postgres.kill();
    await expect(rows()).rejects.toThrow(/refused/);
    await postgres.start();
    expect(await rows()).toBe("1");
    await postgres.stop();
    await postgres.start();
    expect(await rows()).toBe("1");
  });

  it("does not respond while it is frozen, and responds afterwards", async () => {
    await using road = await startTcpProxy(postgres);
    postgres.freeze();
    let said: string | undefined;
    const asked = rows(road.through(url)).then((text) => (said = text));
    await until(() => road.open === 1);
    await turnEventLoop();
    expect(said).toBeUndefined();
    postgres.thaw();
    expect(await asked).toBe("1");
  });

  it("databases are empty and separate", async () => {
    const other = await postgres.database();
    await expect(rows(other)).rejects.toThrow(/does not exist/);
  });

  it("works behind a network that is slow, silent, reset, or cut", async () => {
    await using road = await startTcpProxy(postgres);
    const through = road.through(url);
    const time = installTestClock();
    time.stop();
    road.delay(30);
    const began = time.now();
    let late: string | undefined;
    void rows(through).then((text) => (late = text));
    await until(() => {
      time.skip(5);
      return late !== undefined;
    });
    expect(late).toBe("1");
    // At least one round trip.
    expect(time.now() - began).toBeGreaterThan(60);
    time.go();
    road.delay(0);
    road.hold();
    let said: string | undefined;
    const asked = rows(through).then((text) => (said = text));
    await until(() => road.open === 1);
    await turnEventLoop();
    expect(said).toBeUndefined();
    road.free();
    expect(await asked).toBe("1");
    road.hold();
    const lost = expect(rows(through)).rejects.toThrow();
    await until(() => road.open === 1);
    road.reset();
    await lost;
    road.free();
    road.cut();
    await expect(rows(through)).rejects.toThrow();
    road.mend();
    expect(await rows(through)).toBe("1");
  });

  it.skipIf(!hasPgBouncer())("works behind PgBouncer in transaction mode", async () => {
    await using bouncer = await startPgBouncer(postgres);
    expect(await rows(bouncer.through(url))).toBe("1");
  });
});
