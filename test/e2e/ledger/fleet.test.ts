// Three real gateways on one real PostgreSQL: their guarantees for operators.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { startFleet, type Fleet as Nodes } from "../../kit/database/fleet.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { dial, type SocketClient } from "../../kit/socket-client.ts";
import {
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "../../kit/sockets/realtime-upstream.ts";
import { until } from "../../kit/wait.ts";
import type { Fleet } from "../../../src/runtime/services/fleet.ts";

/** Calls during the outage. */
const AWAY = 150;

const LEASE_MS = 3_000;

const yaml = (url: string, voiceUrl: string) => `
frontends: [chat-completions, responses, realtime]
middleware: [auth, { use: limits, with: { hold: soft } }, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { model: { price: { input: 3, output: 15 } } } }
  voice: { use: openai, with: { base_url: "${voiceUrl}/v1", api_key: k }, models: { gpt-realtime: { operation: realtime } } }
`;

const ANSWER = jsonResponse({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "model",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

describe.skipIf(!hasPostgres())("three gateways on one PostgreSQL", () => {
  let postgres: Postgres;
  let up: TestUpstream;
  let voice: RealtimeUpstream;
  let fleet: Nodes;
  let waitMs = 0;

  beforeAll(async () => {
    postgres = await startPostgres();
    up = await startUpstream({
      "POST /v1/chat/completions": () => ({ ...ANSWER, delayMs: waitMs }),
      "GET /v1/models": jsonResponse({ object: "list", data: [] }),
    });
    voice = await startRealtimeUpstream();
    const url = await postgres.database();
    const more = { lease_ms: `${LEASE_MS}` };
    fleet = await startFleet({ url, nodes: 3, yaml: yaml(up.url, voice.url), with: more });
  });
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]();
    await up?.close();
    await voice?.stop();
    await postgres?.[Symbol.asyncDispose]();
  });

  const ask = async (i: number, key = fleet.key): Promise<number> => {
    const answer = await fetch(`${fleet.nodes[i]!.daemon!.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "up/model", messages: [{ role: "user", content: "Hi" }] }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  /** Opens a WebSocket as soon as the gateway accepts the key. */
  const connected = async (i: number, key = fleet.key, path?: string): Promise<SocketClient> => {
    const opened: SocketClient[] = [];
    await until(() =>
      dial(fleet.nodes[i]!.daemon!.url, { key, ...(path !== undefined && { path }) }).then(
        (client) => opened.push(client) > 0,
        () => false,
      ),
    );
    return opened[0]!;
  };
  const everywhere = (key?: string) => Promise.all([0, 1, 2].map((i) => ask(i, key)));
  const command = (i: number, name: string, input = {}) => fleet.nodes[i]!.daemon!.ask(name, input);

  it("have one first key; each lists all of them with their versions", async () => {
    expect(fleet.nodes.filter(({ daemon }) => daemon!.key !== "")).toHaveLength(1);
    expect(await everywhere()).toEqual([200, 200, 200]);
    await until(async () => {
      const { nodes } = (await command(1, "fleet")) as unknown as Fleet;
      return nodes.filter(({ state, info }) => state === "live" && info?.url).length === 3;
    });
    const { nodes, warnings } = (await command(1, "fleet")) as unknown as Fleet;
    expect(nodes.map(({ info }) => info!.url).toSorted()).toEqual(
      fleet.nodes.map(({ daemon }) => daemon!.url).toSorted(),
    );
    for (const { clockAheadMs, syncLagMs } of nodes) {
      expect(Math.abs(clockAheadMs!)).toBeLessThan(10_000);
      expect(syncLagMs).toBe(0);
    }
    // Each file has its own URL of the database.
    expect(warnings).toEqual(["3 configs are in use at the same time"]);
  });

  it("reject a revoked key everywhere within 1.5 s", async () => {
    for (let n = 0; n < 5; n++) {
      const { secret } = (await command(n % 3, "keys.create", { name: `k${n}` })) as {
        secret: string;
      };
      await until(async () => (await everywhere(secret)).every((status) => status === 200));
      await command((n + 1) % 3, "keys.revoke", { id: `k${n}` });
      await until(
        async () => (await everywhere(secret)).every((status) => status === 401),
        () => "an end of the key everywhere",
        10 * 1_500,
      );
    }
  });

  it("close a WebSocket within 1.5 s after another gateway revoked its key", async () => {
    const { secret } = (await command(0, "keys.create", { name: "gone" })) as { secret: string };
    await until(async () => (await everywhere(secret)).every((status) => status === 200));
    const created = await fetch(`${fleet.nodes[0]!.daemon!.url}/v1/realtime/client_secrets`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
      body: JSON.stringify({ session: { model: "voice/gpt-realtime" } }),
    });
    const { value } = (await created.json()) as { value: string };
    await using own = await connected(1, secret);
    // Another gateway than the one that created the client secret.
    await using browser = await connected(1, value, "/v1/realtime");
    await using other = await connected(1);
    await command(2, "keys.revoke", { id: "gone" });
    for (const { ws, closed } of [own, browser]) {
      await until(
        () => ws.readyState === ws.CLOSED,
        () => "an end of the WebSocket",
        10 * 1_500,
      );
      expect(await closed).toMatchObject({ code: 1008 });
    }
    expect(other.ws.readyState).toBe(other.ws.OPEN);
  });

  it("close a WebSocket within 1.5 s after another gateway spent the budget of its key or account", async () => {
    // One call costs more.
    const limits = ["usd=0.00001/total"];
    await command(0, "accounts.create", { id: "team", limits });
    for (const input of [{ limits }, { account: "team" }]) {
      const { secret } = (await command(0, "keys.create", input)) as { secret: string };
      await using poor = await connected(1, secret);
      await using rich = await connected(1);
      expect(await ask(0, secret)).toBe(200);
      await until(
        () => poor.ws.readyState === poor.ws.CLOSED,
        () => "an end of the WebSocket",
        10 * 1_500,
      );
      expect(await poor.closed).toMatchObject({ code: 1008 });
      expect(poor.messages.at(-1)).toMatchObject({ error: { code: "insufficient_quota" } });
      expect(rich.ws.readyState).toBe(rich.ws.OPEN);
    }
  });

  it("return 503 immediately during an outage, send nothing, and serve again soon after it", async () => {
    await postgres.kill();
    await until(async () => (await everywhere()).every((status) => status === 503));
    const sent = up.requests.length;
    const tries = () => fleet.nodes.reduce((sum, { road }) => sum + road.made, 0);
    const before = tries();
    const statuses = await Promise.all(Array.from({ length: AWAY }, (_, n) => ask(n % 3)));
    expect(new Set(statuses)).toEqual(new Set([503]));
    // Each gateway retries the database at intervals, and not for these calls.
    expect(tries() - before).toBeLessThan(AWAY / 2);
    expect(up.requests.length).toBe(sent);
    await postgres.start();
    await until(async () => (await everywhere()).every((status) => status === 200));
  });

  it("settle the open calls of a killed gateway once", async () => {
    waitMs = 20_000;
    const before = up.requests.length;
    const asked = Promise.allSettled(Array.from({ length: 5 }, () => ask(2)));
    await until(() => up.requests.length === before + 5);
    const { daemon } = fleet.nodes[2]!;
    daemon!.kill("SIGKILL");
    await Promise.all([daemon!.exit, asked]);
    waitMs = 0;
    const settled = async () => {
      const page = await command(0, "ledger.entries", { outcome: "recovered", limit: 100 });
      return (page as { items: unknown[] }).items.length;
    };
    await until(async () => (await settled()) === 5);
    const { nodes } = (await command(1, "fleet")) as unknown as Fleet;
    expect(nodes.find(({ info }) => info?.pid === daemon!.pid)?.state).toBe("dead");
    await fleet.nodes[2]!.start();
    expect(await everywhere()).toEqual([200, 200, 200]);
    expect(await settled()).toBe(5);
  });
});
