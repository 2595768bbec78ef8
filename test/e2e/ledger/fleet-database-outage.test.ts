// Gateways on one PostgreSQL: service during a database outage, and shared state while it is
// available.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { startTcpProxy } from "../../kit/database/tcp-proxy.ts";
import { startFleet, type Fleet as Nodes } from "../../kit/database/fleet.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import {
  hasPostgres,
  postgresStoreYaml,
  startPostgres,
  type Postgres,
} from "../../kit/database/postgres.ts";
import { until } from "../../kit/wait.ts";
import { freePort } from "../../kit/process/ports.ts";

/** Calls during the outage. */
const AWAY = 150;

const yaml = (url: string) => `
frontends: [chat-completions, responses, images, models]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: 0.04 } }, model: { price: { input: 3, output: 15 } } } }
  many: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k } }
`;

const CHAT = jsonResponse({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "model",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const EACH = 40_000_000;

describe.skipIf(!hasPostgres())("gateways during a database outage", () => {
  let postgres: Postgres;
  let up: TestUpstream;
  let fleet: Nodes;
  let url: string;
  /** The provider's model list. */
  let listed = jsonResponse({ object: "list", data: [] });
  /** A chat waits for this at the provider. */
  let held: Promise<void> | undefined;

  beforeAll(async () => {
    postgres = await startPostgres();
    up = await startUpstream({
      "POST /v1/chat/completions": async () => {
        await held;
        return CHAT;
      },
      "POST /v1/images/generations": () => ({
        ...jsonResponse({ created: 1, data: [{ b64_json: "iVBORw0KGgo=" }] }),
        billedUsage: { images: 1 },
      }),
      "GET /v1/models": () => listed,
    });
    url = await postgres.database();
    const more = { lease_ms: "3000", on_outage: "offline_budget", offline_share: "0.2" };
    fleet = await startFleet({ url, nodes: 2, yaml: yaml(up.url), with: more });
  });
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]();
    await up?.close();
    await postgres?.[Symbol.asyncDispose]();
  });

  const post = (i: number, path: string, key: string, body: JsonObject) =>
    postAt(fleet.nodes[i]!.daemon!, path, key, body);
  const postAt = async ({ url }: { url: string }, path: string, key: string, body: JsonObject) => {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, text };
  };
  const draw = async (i: number, key: string, response_format = "b64_json") =>
    post(i, "/v1/images/generations", key, { model: "up/draw", prompt: "a gate", response_format });
  const command = (i: number, name: string, input: JsonObject = {}) =>
    fleet.nodes[i]!.daemon!.ask(name, input);

  it("an image of one gateway is served by the other at its exact URL only", async () => {
    const { text } = await draw(0, fleet.key, "url");
    const { url } = (JSON.parse(text) as { data: { url: string }[] }).data[0]!;
    const other = new URL(url);
    other.host = new URL(fleet.nodes[1]!.daemon!.url).host;
    await until(async () => {
      const { nodes } = (await command(1, "fleet")) as unknown as {
        nodes: { info?: { address?: string } }[];
      };
      return nodes.filter(({ info }) => info?.address).length === 2;
    });
    await until(async () => (await fetch(other)).status === 200);
    const found = await fetch(other);
    expect(found.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await found.arrayBuffer()).toString("base64")).toBe("iVBORw0KGgo=");
    other.searchParams.set("s", "A".repeat(43));
    expect((await fetch(other)).status).toBe(404);
    // An unsealed request gets the response of any unknown path.
    const stranger = await fetch(new URL("/.tollgate/peer", other), { method: "POST", body: "{}" });
    expect(stranger.status).toBe(404);
  });

  it("a stored item of one gateway is found by the other, with the same key only", async () => {
    const said = await post(0, "/v1/responses", fleet.key, { model: "up/model", input: "Hi" });
    const { output } = JSON.parse(said.text) as { output: { id: string }[] };
    const input = [
      { type: "item_reference", id: output[0]!.id },
      { role: "user", content: "And now?" },
    ];
    const again = (key: string) => post(1, "/v1/responses", key, { model: "up/model", input });
    expect((await again(fleet.key)).status).toBe(200);
    expect(up.requests.at(-1)!.body.toString()).toContain("Hi.");
    const { secret } = (await command(0, "keys.create", { name: "other" })) as { secret: string };
    await until(async () => (await draw(1, secret)).status === 200);
    expect((await again(secret)).status).toBe(400);
  });

  it("a gateway that starts later, with workers, shares lists, items, and images with the others", async () => {
    listed = jsonResponse({ object: "list", data: [{ id: "fresh", object: "model" }] });
    const knows = async (url: string) => {
      const answer = await fetch(`${url}/v1/models`, {
        headers: { authorization: `Bearer ${fleet.key}`, connection: "close" },
      });
      return (await answer.text()).includes("many/fresh");
    };
    await until(async () => {
      await command(0, "models.refresh").catch(() => undefined);
      return knows(fleet.nodes[0]!.daemon!.url);
    });
    listed = jsonResponse({ error: { message: "It is ill." } }, 500);
    const address = (
      JSON.parse((await draw(0, fleet.key, "url")).text) as { data: { url: string }[] }
    ).data[0]!.url;
    const item = (text: string) => (JSON.parse(text) as { output: { id: string }[] }).output[0]!.id;
    const first = item(
      (await post(0, "/v1/responses", fleet.key, { model: "up/model", input: "Hi" })).text,
    );
    await using late = await startDaemon({
      yaml: `workers: 2\nstore: ${postgresStoreYaml(url, { lease_ms: "3000" })}\n${yaml(up.url)}`,
    });
    const asked = async (id: string) => {
      const answer = await fetch(`${late.url}/v1/responses`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${fleet.key}`,
          connection: "close",
        },
        body: JSON.stringify({
          model: "up/model",
          input: [
            { type: "item_reference", id },
            { role: "user", content: "And now?" },
          ],
        }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    // A new connection each, so that both of its workers are used.
    await until(async () => {
      for (let i = 0; i < 8; i++) if (!(await knows(late.url))) return false;
      return true;
    });
    let last = "";
    for (let i = 0; i < 8; i++) {
      const { status, text } = await asked(first);
      expect(status, text).toBe(200);
      last = item(text);
      const image = new URL(address);
      image.host = new URL(late.url).host;
      expect((await fetch(image, { headers: { connection: "close" } })).status).toBe(200);
    }
    const input = [
      { type: "item_reference", id: last },
      { role: "user", content: "And then?" },
    ];
    // Others see it after its next heartbeat.
    await until(
      async () =>
        (await post(0, "/v1/responses", fleet.key, { model: "up/model", input })).status === 200,
    );
    expect(await late.stop()).toBe(0);
  });

  it("keys with budget leases continue within them, and their rows are written later; other keys are rejected immediately", async () => {
    const worth = 40;
    const limits = [formatLimit({ unit: "nano_usd", max: worth * EACH, per: "total" })];
    const { secret: key } = (await command(0, "keys.create", { name: "rich", limits })) as {
      secret: string;
    };
    const sliced = async () =>
      Number(await postgres.sql(url, "SELECT count(*) FROM tollgate.budget_lease"));
    // Each leases a part with its next heartbeat, so something must be left by then.
    let served = 0;
    for (const i of [0, 1, 0, 1, 0, 1]) {
      await until(async () => (await draw(i, key)).status === 200);
      served++;
    }
    await until(async () => (await sliced()) === 2);
    await postgres.kill();
    const away = { ok: 0, refused: 0 };
    for (let n = 0; n < 30; n++) {
      const { status } = await draw(n % 2, key);
      if (status === 200) away.ok++;
      else if (status === 503) away.refused++;
      else throw new Error(`answered ${status}`);
    }
    expect(away.ok).toBeGreaterThan(0);
    expect(away.refused).toBeGreaterThan(0);
    expect(up.bills.length).toBeLessThanOrEqual(worth + 1);
    const sent = up.requests.length;
    const tries = () => fleet.nodes.reduce((sum, { road }) => sum + road.made, 0);
    const before = tries();
    for (let n = 0; n < AWAY; n++) {
      const { status, text } = await draw(n % 2, fleet.key);
      expect([status, text]).toEqual([503, expect.stringContaining("ledger_unavailable")]);
    }
    // Each gateway retries the database at intervals, and not for these calls.
    expect(tries() - before).toBeLessThan(AWAY / 2);
    expect(up.requests.length).toBe(sent);
    await postgres.start();
    await Promise.all(fleet.nodes.map(({ daemon }) => daemon!.line(/store reachable again/)));
    await until(async () => (await draw(0, fleet.key)).status === 200);
    // From then on it has no larger value than before.
    let turn = 0;
    await until(async () => {
      // A rejection before all leases were returned does not show what is left.
      const whole = (await sliced()) === 0;
      const { status } = await draw(turn++ % 2, key);
      if (status === 200) served++;
      return status !== 200 && whole;
    });
    expect(served + away.ok).toBe(worth);
    const { items } = (await command(0, "ledger.entries", { key: "rich", limit: 1000 })) as {
      items: { kind: string }[];
    };
    expect(items.filter(({ kind }) => kind === "settle")).toHaveLength(worth);
    expect(await command(1, "ledger.verify")).toMatchObject({ problems: [] });
  });

  it("a response during the outage is billed once, although its gateway is killed before the database returns", async () => {
    const url = await postgres.database();
    await using alone = await startFleet({ url, nodes: 1, yaml: yaml(up.url) });
    const [node] = alone.nodes as [Nodes["nodes"][number]];
    const ask = () =>
      postAt(node.daemon!, "/v1/chat/completions", alone.key, {
        model: "up/model",
        messages: [{ role: "user", content: "Hi" }],
      });
    const ending = Promise.withResolvers<void>();
    held = ending.promise;
    const sent = up.requests.length;
    const answers = [ask(), ask()];
    await until(() => up.requests.length === sent + 2);
    await postgres.kill();
    // An idle gateway would notice it only at its next write.
    await until(async () => (await ask()).status === 503);
    ending.resolve();
    held = undefined;
    for (const { status, text } of await Promise.all(answers)) {
      expect(status, text).toBe(200);
      expect(text).toContain("Hi.");
    }
    node.daemon!.kill("SIGKILL");
    await node.daemon!.exit;
    await postgres.start();
    const next = await node.start();
    const { items } = (await next.ask("ledger.entries", { limit: 100 })) as unknown as {
      items: { kind: string; outcome?: string; usage?: JsonObject }[];
    };
    expect(items.filter(({ kind }) => kind === "settle")).toMatchObject([
      { outcome: "ok", usage: { output: 1 } },
      { outcome: "ok", usage: { output: 1 } },
    ]);
    expect(items).toHaveLength(4);
    expect(next.log.map(({ msg }) => msg).join("\n")).toMatch(/rows spooled by earlier process/);
    expect((await ask()).status).toBe(200);
    expect(await next.ask("ledger.verify")).toMatchObject({ problems: [] });
  });

  it("a gateway that starts during an outage reports it in one log line and at /readyz, and serves when the database returns", async () => {
    await using road = await startTcpProxy(postgres);
    const url = road.through(await postgres.database());
    await postgres.kill();
    const port = await freePort();
    const dir = await mkdtemp(join(tmpdir(), "tollgate-late-"));
    const starting = startDaemon({
      yaml: `store: ${postgresStoreYaml(url)}\n${yaml(up.url)}`,
      dir,
      args: ["--port", `${port}`],
    });
    const at = `http://127.0.0.1:${port}`;
    const status = (path: string) =>
      fetch(`${at}${path}`).then(
        (answer) => answer.status,
        () => 0,
      );
    await until(async () => (await status("/readyz")) === 503);
    expect(await status("/healthz")).toBe(200);
    const refused = await fetch(`${at}/v1/chat/completions`, { method: "POST", body: "{}" });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    // It had reason to report it repeatedly.
    const tries = road.made;
    await until(() => road.made >= tries + 4);
    await postgres.start();
    const gateway = await starting;
    await until(async () => (await status("/readyz")) === 200);
    const said = gateway.log.filter(({ level }) => level === "error");
    expect(said.map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/store unavailable at startup, will retry/),
    ]);
    await gateway[Symbol.asyncDispose]();
    await rm(dir, { recursive: true, force: true });
  });
});
