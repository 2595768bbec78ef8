// Live gateways report rows that a failover lost from a stopped gateway within seconds, and not
// only with their second heartbeat. Until then an operator would trust an incomplete ledger.
import { expect, it } from "vitest";
import { createPostgresStore } from "../../../../../plugins/stores/postgres/store.ts";
import type { StoreEvent } from "../../../../../src/plugin/store/store-instance.ts";
import { reserveCommand } from "../../../../../src/testing/store.ts";
import { hasPostgres, startPostgres, startReplica } from "../../../../kit/database/postgres.ts";
import { startTcpProxy } from "../../../../kit/database/tcp-proxy.ts";
import { until } from "../../../../kit/wait.ts";
import { settings } from "../../postgres-under-test.ts";

/** Ten times the documented time. */
const NAMED_MS = 5_000 * 10;

it.skipIf(!hasPostgres()).each(["one that is idle", "one that is busy"])(
  "is reported soon, by %s, that sends no heartbeat during this time",
  async (how) => {
    await using primary = await startPostgres();
    const url = await primary.database();
    await using road = await startTcpProxy(primary);
    const news: StoreEvent[] = [];
    const { address } = settings(road.through(url));
    const by = {
      address,
      ownerAddress: address,
      reportAddress: address,
      clock: "database",
    } as const;
    // No host sends heartbeats here: its next one would follow after a third of the lease.
    const [one, two] = [
      createPostgresStore(settings(url, by)),
      createPostgresStore(settings(url, by)),
    ];
    await one.open({ instance: "one" }, (each) => void news.push(each));
    await two.open({ instance: "two" });
    const begin = (name: string) => [reserveCommand(name, { at: Date.now() })];
    await two.apply(begin("known"));
    await using replica = await startReplica(primary);
    const known = async () => primary.sql(replica.at(url), "SELECT count(*) FROM tollgate.entry");
    await until(async () => (await known()) === "1");
    await primary.deafen();
    await two.apply(begin("lost.1"));
    await two.apply(begin("lost.2"));
    await one.apply([{ do: "heartbeat", at: Date.now() }]);
    await two.close(false);
    await primary.kill();
    await replica.promote();
    road.lead(replica.port);
    const named = () => news.find(({ type }) => type === "rows_lost");
    let n = 0;
    await until(
      async () => {
        if (how === "one that is busy")
          await one.apply(begin(`later.${n++}`)).catch(() => undefined);
        return named() !== undefined;
      },
      () => "a word on what was lost",
      NAMED_MS,
    );
    expect(named()).toEqual({ type: "rows_lost", instance: "two", from: 2, to: 3 });
    // It is not reported again by later writes or heartbeats.
    for (let i = 0; i < 5; i++) {
      await one.apply(begin(`after.${i}`));
      await one.apply([{ do: "heartbeat", at: Date.now() }]);
    }
    expect(news.filter(({ type }) => type === "rows_lost")).toHaveLength(1);
    await one.close();
  },
);
