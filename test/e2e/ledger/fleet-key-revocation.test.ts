// A key that is revoked while one gateway is disconnected from the database. With on_outage:
// reject, this gateway serves none of its calls. In offline mode, it serves them for the configured
// time, and not longer.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { startFleet, type Fleet } from "../../kit/database/fleet.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { until } from "../../kit/wait.ts";

const yaml = (url: string) => `
frontends: [images]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: 0.04 } } } }
`;
const EACH = 40_000_000;
/** Maximum time without the database. */
const AWAY_MS = 8_000;

describe.skipIf(!hasPostgres())("a key that is revoked while a gateway is disconnected", () => {
  let postgres: Postgres;
  let up: TestUpstream;
  beforeAll(async () => {
    postgres = await startPostgres();
    up = await startUpstream({
      "POST /v1/images/generations": () => ({
        ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
        billedUsage: { images: 1 },
      }),
      "GET /v1/models": jsonResponse({ object: "list", data: [] }),
    });
  });
  afterAll(async () => {
    await up?.close();
    await postgres?.[Symbol.asyncDispose]();
  });

  const started = async (url: string, more: Readonly<Record<string, string>> = {}) => {
    const fleet = await startFleet({
      url,
      nodes: 2,
      yaml: yaml(up.url),
      with: { lease_ms: "3000", ...more },
    });
    const { secret } = (await fleet.nodes[0]!.daemon!.ask("keys.create", {
      name: "leaver",
      limits: [formatLimit({ unit: "nano_usd", max: 100_000 * EACH, per: "total" })],
    } as JsonObject)) as { secret: string };
    return { fleet, draw: (i: number) => drawn(fleet, i, secret) };
  };
  const drawn = async (fleet: Fleet, i: number, key: string): Promise<number> => {
    const answer = await fetch(`${fleet.nodes[i]!.daemon!.url}/v1/images/generations`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "up/draw", prompt: "a gate", response_format: "b64_json" }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  const revoke = (fleet: Fleet) => fleet.nodes[0]!.daemon!.ask("keys.revoke", { id: "leaver" });

  it("on_outage: reject: none of its calls is served there, before or after the reconnect", async () => {
    const { fleet, draw } = await started(await postgres.database());
    await using _ = fleet;
    await until(async () => (await draw(1)) === 200);
    fleet.nodes[1]!.road.cut();
    await revoke(fleet);
    const billed = up.bills.length;
    for (let n = 0; n < 10; n++) expect([401, 503]).toContain(await draw(1));
    fleet.nodes[1]!.road.mend();
    await until(async () => (await draw(1)) === 401);
    expect(up.bills.length).toBe(billed);
  });

  it("on_outage: offline_budget: it is served within its budget lease, for at most the configured time, and the ledger has all calls", async () => {
    const url = await postgres.database();
    const more = {
      on_outage: "offline_budget",
      offline_share: "0.2",
      offline_max_ms: `${AWAY_MS}`,
    };
    const { fleet, draw } = await started(url, more);
    await using _ = fleet;
    const before = up.bills.length;
    const sliced = () => postgres.sql(url, "SELECT count(*) FROM tollgate.budget_lease");
    await until(async () => (await draw(1)) === 200 && (await sliced()) === "1");
    const [, node] = fleet.nodes;
    const said = node!.daemon!.log.length;
    node!.road.cut();
    await until(async () => {
      expect([200, 503]).toContain(await draw(1));
      return node!
        .daemon!.log.slice(said)
        .some(({ msg }) => /serving from budget leases/.test(String(msg)));
    });
    await revoke(fleet);
    await until(async () => (await draw(0)) === 401);
    // Its lease covers thousands of calls, so only the time limit ends it.
    await until(async () => (await draw(1)) === 503);
    const billed = up.bills.length;
    for (let n = 0; n < 10; n++) expect(await draw(1)).toBe(503);
    node!.road.mend();
    await until(async () => (await draw(1)) === 401);
    expect(up.bills.length).toBe(billed);
    await until(async () => {
      const { total } = (await fleet.any().ask("ledger.totals", {})) as unknown as {
        total: { costNano: string };
      };
      return total.costNano === `${(billed - before) * EACH}`;
    });
    expect(await fleet.any().ask("ledger.verify")).toMatchObject({ problems: [] });
  });
});
