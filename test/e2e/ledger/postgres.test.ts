// The store of several gateways, mounted as an operator does: by its short name, from a folder
// outside of this checkout.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestFolder } from "../../kit/process/command-line.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";

const yaml = (url: string, more = "") => `
store: { use: postgres, with: { url: "${url}"${more} } }
frontends: [chat-completions]
middleware: [auth, limits, usage]
providers: { demo: { use: demo } }
`;

describe.skipIf(!hasPostgres())("store: { use: postgres }", () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres?.[Symbol.asyncDispose]());

  it("a command upgrades its schema while no gateway runs, after it reports the steps", async () => {
    const url = await postgres.database();
    await using place = await createTestFolder({ "gateway.yaml": yaml(url, ", migrate: never") });
    const status = async () => JSON.parse((await place.said(["store", "status", "--json"])).out);
    expect(await status()).toMatchObject({ version: 0, latest: 1, expand: [1] });
    expect((await place.said(["store", "plan"])).out).toMatch(
      /CREATE SCHEMA IF NOT EXISTS tollgate/,
    );
    expect(await status()).toMatchObject({ version: 0 });
    const refused = await place.said(["keys", "list"]);
    expect(refused.err).toMatch(/Run tollgate store migrate/);
    expect((await place.said(["store", "migrate", "--json"])).out).toMatch(/"made":\s*\[\s*1\s*\]/);
    expect(await status()).toMatchObject({ version: 1, expand: [] });
    expect((await place.said(["keys", "list"])).code).toBe(0);
  });

  it("serves, settles, and reports its version while it runs", async () => {
    const url = await postgres.database();
    await using gateway = await startDaemon({ yaml: yaml(url) });
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
    const { items } = (await gateway.ask("ledger.entries", {})) as { items: { kind: string }[] };
    expect(items.map(({ kind }) => kind)).toEqual(["reserve", "settle"]);
    const found = (status: string) => gateway.ask("requests.search", { status, limit: 1 });
    const [ok, failed] = [await found("ok"), await found("failed")] as { items: object[] }[];
    expect(ok!.items).toMatchObject([{ model: "demo/echo", status: "ok", calls: [{ n: 1 }] }]);
    expect(failed).toMatchObject({ items: [] });
    expect(failed).not.toHaveProperty("next");
    expect(await gateway.ask("store/status", {})).toMatchObject({
      version: 1,
      expand: [],
      olderGateways: 0,
    });
    expect(await gateway.ask("ledger.verify", {})).toMatchObject({ problems: [] });
  });
});
