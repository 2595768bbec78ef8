// Parallel first requests of new members, at several real gateways on a real PostgreSQL and at the
// workers of one gateway: no member exceeds its limit, no group its places, and no request counts
// twice through two sources.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { startFleet } from "../../kit/database/fleet.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

/** Cost of an image. It is reserved and billed alike. */
const EACH = 0.04;
/** Requests that fit into the limit of a member. */
const FIT = 3;
const PLACES = 5;
const CALLS = 8;
const ROUNDS = NIGHTLY ? 12 : 3;
const MEMBERS_PER_ROUND = 10;

const yaml = (url: string) => `
frontends: [images, usage]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
scopes:
  session:
    from: ["header:x-session", "body:/user"]
    within: gateway
    limits: [usd=${(FIT * EACH + EACH / 2).toFixed(2)}/total, requests=${CALLS * 2}/total]
  few: { from: ["header:x-few"], within: gateway, limits: [requests=100/total], max_members: ${PLACES} }
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: ${EACH} } } } }
`;

const draw = async (
  { url }: Pick<Daemon, "url">,
  key: string,
  headers: Record<string, string>,
  body: object = {},
): Promise<number> => {
  // A connection each, so that all workers are used.
  const answer = await fetch(`${url}/v1/images/generations`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      connection: "close",
      ...headers,
    },
    body: JSON.stringify({ model: "up/draw", prompt: "a gate", ...body }),
  });
  await answer.arrayBuffer();
  return answer.status;
};
const served = (statuses: readonly number[]): number =>
  statuses.filter((status) => status === 200).length;

let up: TestUpstream;
beforeAll(async () => {
  up = await startUpstream({
    "POST /v1/images/generations": () => ({
      ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
      billedUsage: { images: 1 },
    }),
    "GET /v1/models": jsonResponse({ object: "list", data: [] }),
  });
});
afterAll(() => up?.close());

/** Checks the law at some gateways. Each call goes to the next one. */
async function checkFirstCalls(gateways: readonly Daemon[], key: string): Promise<void> {
  let n = 0;
  const next = () => gateways[n++ % gateways.length]!;
  const usedBy = async (value: string): Promise<number[]> => {
    const { limitUsage } = (await next().ask("scopes.show", {
      name: "session",
      value,
    })) as unknown as { limitUsage: { used: string }[] };
    return limitUsage.map(({ used }) => Number(used));
  };
  for (let round = 0; round < ROUNDS; round++) {
    const members = Array.from({ length: MEMBERS_PER_ROUND }, (_, i) => `r${round}.${i}`);
    const billed = up.bills.length;
    const statuses = await Promise.all(
      members.map((member) =>
        Promise.all(
          // The same member through the header, the body, or both.
          Array.from({ length: CALLS }, (_, i) =>
            draw(
              next(),
              key,
              i % 3 === 1 ? {} : { "x-session": member },
              i % 3 === 0 ? {} : { user: member },
            ),
          ),
        ),
      ),
    );
    expect(statuses.map(served)).toEqual(members.map(() => FIT));
    expect(up.bills.length - billed).toBe(FIT * members.length);
    // Each request counted once, although two sources named the member.
    expect(await usedBy(members[0]!)).toEqual([FIT * EACH * 1e9, FIT]);
  }
  const newcomers = Array.from({ length: 4 * PLACES }, (_, i) => `few${i}`);
  const first = await Promise.all(newcomers.map((few) => draw(next(), key, { "x-few": few })));
  expect(served(first)).toBe(PLACES);
  // Members that have a place are served at every gateway, immediately.
  const inside = newcomers.filter((_, i) => first[i] === 200);
  for (const gateway of gateways)
    for (const few of inside) expect(await draw(gateway, key, { "x-few": few })).toBe(200);

  // A reset at one gateway applies at all of them.
  await next().ask("scopes.reset", { name: "session", value: "r0.0" } as JsonObject);
  const again = await Promise.all(
    Array.from({ length: CALLS }, () => draw(next(), key, { "x-session": "r0.0" })),
  );
  expect(served(again)).toBe(FIT);

  const usage = await fetch(`${next().url}/v1/usage?by=session`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const { data } = (await usage.json()) as { data: readonly object[] };
  expect(data).toContainEqual(expect.objectContaining({ session: "r0.1", calls: FIT }));
  expect(data).toContainEqual(expect.objectContaining({ session: "r0.0", calls: 2 * FIT }));

  const erased = await next().ask("scopes.erase", { name: "session", value: "r0.0" } as JsonObject);
  // Each gateway of a fleet stores the text once.
  expect((erased as { texts: number }).texts).toBeGreaterThan(0);
  expect(await usedBy("r0.0")).toEqual([0, 0]);
  const rows = await next().ask("ledger.entries", { label: "session=r0.0" } as JsonObject);
  expect(rows).toMatchObject({ items: [] });
}

it("at the workers of one gateway", { timeout: 600_000 }, async () => {
  await using gateway = await startDaemon({ yaml: `workers: 2\n${yaml(up.url)}` });
  await checkFirstCalls([gateway], gateway.key);
});

describe.skipIf(!hasPostgres())("on PostgreSQL", () => {
  let postgres: Postgres;
  beforeAll(async () => void (postgres = await startPostgres()));
  afterAll(() => postgres?.[Symbol.asyncDispose]());

  it("at three gateways", { timeout: 600_000 }, async () => {
    const url = await postgres.database();
    await using fleet = await startFleet({ url, nodes: 3, yaml: yaml(up.url) });
    await checkFirstCalls(
      fleet.nodes.map(({ daemon }) => daemon!),
      fleet.key,
    );
  });
});
