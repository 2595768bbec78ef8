// WebSockets of a whole gateway: over TLS and Unix sockets, with workers, during a shutdown and a
// hot restart, and when their budget is spent elsewhere.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { waitForExit } from "../../kit/process/processes.ts";
import { dial, isTerminal, type DialOptions } from "../../kit/socket-client.ts";
import { until } from "../../kit/wait.ts";
import { authority } from "../../rig/faults/certificates.ts";

const PROVIDERS = `
middleware: [auth, { use: limits, with: { hold: soft } }]
providers:
  demo: { use: demo, models: { echo: { price: { input: 1000, output: 1000 } } } }
`;
const create = { type: "response.create", model: "demo/echo", input: "Hello there." };

const ask = async (client: Awaited<ReturnType<typeof dial>>) => {
  client.send(create);
  return (await client.until(isTerminal)).at(-1);
};
const connected = (gateway: Pick<Daemon, "url" | "key">, more: DialOptions = {}) =>
  dial(gateway.url, { key: gateway.key, ...more });

describe("a WebSocket", () => {
  it("is served over TLS and over a Unix socket", async () => {
    const made = authority().issue({ name: "localhost" });
    await using gateway = await startInProcess({
      yaml: `
listen:
  - { host: 127.0.0.1, port: 0, tls: { cert: cert.pem, key: key.pem } }
  - { socket: ./gw.sock }
${PROVIDERS}`,
      files: { "cert.pem": made.cert, "key.pem": made.key },
    });
    expect(gateway.url).toMatch(/^https:/);
    await using secure = await connected(gateway, { rejectUnauthorized: false });
    expect((await ask(secure)).type).toBe("response.completed");
    const socket = join(gateway.dir, "gw.sock");
    await using local = await dial(`ws+unix:${socket}`, {
      key: gateway.key,
      path: ":/v1/responses",
    });
    expect((await ask(local)).type).toBe("response.completed");
  });

  it("gets a notice and 1001 when the gateway shuts down, after its response", async () => {
    await using gateway = await startInProcess({
      yaml: `shutdown: { timeout: 20s, announce: 0s }\n${PROVIDERS}`,
    });
    await using idle = await connected(gateway);
    await using busy = await connected(gateway);
    busy.send({ ...create, model: "demo/slow", input: "20 words" });
    await busy.until(({ type }) => type === "response.output_text.delta");
    const stopping = gateway.stop();
    expect(await idle.closed).toMatchObject({ code: 1001 });
    expect(idle.messages.at(-1)).toMatchObject({
      type: "error",
      error: { code: "websocket_connection_limit_reached" },
    });
    expect(await busy.closed).toMatchObject({ code: 1001 });
    const types = busy.messages.map(({ type }) => type);
    expect(types.indexOf("response.completed")).toBe(types.length - 2);
    expect(types.at(-1)).toBe("error");
    await stopping;
  });

  it("that the client cuts in the middle of a response leaves an estimated row", async () => {
    await using gateway = await startInProcess({
      yaml: PROVIDERS.replace("echo: {", "slow: {"),
    });
    const client = await connected(gateway);
    client.send({ ...create, model: "demo/slow", input: "200 words" });
    await client.until(({ type }) => type === "response.output_text.delta");
    client.ws.terminate();
    const settled = async () =>
      ((await gateway.ask("ledger.entries", {})) as any).items.filter(
        ({ kind }: any) => kind === "settle",
      );
    await until(async () => (await settled()).length === 1);
    const [{ state, usage }] = await settled();
    expect(state).toBe("estimated");
    expect(usage.output).toBeGreaterThan(0);
  });

  it("stays with the old process during a hot restart, which serves its requests", async () => {
    await using gateway = await startDaemon({
      yaml: `shutdown: { timeout: 6s }\n${PROVIDERS}`,
    });
    await using client = await connected(gateway);
    await ask(client);
    let next = gateway.pid;
    await using _ = {
      [Symbol.asyncDispose]: async () => {
        if (next === gateway.pid) return;
        process.kill(next, "SIGKILL");
        await waitForExit(next);
      },
    };
    process.kill(gateway.pid, "SIGUSR2");
    await until(async () => {
      const status = (await gateway.ask("status").catch(() => {})) as unknown as
        | GatewayStatus
        | undefined;
      next = status?.pid ?? next;
      return next !== gateway.pid;
    });
    // The old process still serves the socket.
    expect((await ask(client)).type).toBe("response.completed");
    // A new socket is served by the new process.
    await using other = await connected(gateway);
    expect((await ask(other)).type).toBe("response.completed");
    // The old process ends with a notice, and takes the socket with it.
    expect(await client.closed).toMatchObject({ code: 1001 });
    expect(client.messages.at(-1).error.code).toBe("websocket_connection_limit_reached");
    expect((await ask(other)).type).toBe("response.completed");
  });
});

/** Spends more than a budget over HTTP. */
async function spend(
  gateway: Pick<Daemon, "url">,
  secret: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const statuses = new Set<number>();
  await until(async () => {
    const { status } = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        connection: "close",
        ...headers,
      },
      body: JSON.stringify({
        model: "demo/echo",
        messages: [{ role: "user", content: "Spend this." }],
      }),
    });
    statuses.add(status);
    return status === 429 || status === 402;
  });
  expect(statuses).toContain(200);
}

async function keyWithBudget(gateway: InProcessGateway | Daemon): Promise<string> {
  const made = await gateway.ask("keys.create", { limits: ["usd=0.05/month"] } as JsonObject);
  return (made as { secret: string }).secret;
}

describe("a budget that is spent over HTTP closes idle sockets with 1008", () => {
  it("in one process", async () => {
    await using gateway = await startInProcess({ yaml: PROVIDERS });
    const secret = await keyWithBudget(gateway);
    await using poor = await dial(gateway.url, { key: secret });
    await using rich = await connected(gateway);
    await spend(gateway, secret);
    expect(await poor.closed).toMatchObject({ code: 1008 });
    expect(poor.messages.at(-1)).toMatchObject({
      type: "error",
      error: { code: "insufficient_quota" },
    });
    expect((await ask(rich)).type).toBe("response.completed");
  });

  it("of a member of a scope, unless the scope still serves its requests", async () => {
    await using gateway = await startInProcess({
      yaml: `
scopes:
  session: { from: ["header:x-session"], limits: [usd=0.05/total] }
  counted: { from: ["header:x-counted"], limits: [usd=0.000000001/total], overflow: warn }
  cheap:
    from: ["header:x-cheap"]
    limits: [usd=0.000000001/total]
    overflow: { downgrade: demo/slow }
${PROVIDERS.replace("echo: {", "slow: { price: { input: 1, output: 1 } }, echo: {")}`,
    });
    const poor = { "x-session": "poor" };
    const headers = [
      poor,
      { "x-session": "rich" },
      { "x-counted": "spent" },
      { "x-cheap": "spent" },
    ];
    const [spent, ...served] = await Promise.all(
      headers.map((sent) => connected(gateway, { headers: sent })),
    );
    await using _ = {
      [Symbol.asyncDispose]: async () => {
        for (const client of [spent!, ...served]) await client[Symbol.asyncDispose]();
      },
    };
    for (const client of [spent!, ...served])
      expect((await ask(client)).type).toBe("response.completed");
    await spend(gateway, gateway.key, poor);
    expect(await spent!.closed).toMatchObject({ code: 1008 });
    for (const client of served) expect((await ask(client)).type).toBe("response.completed");
  });

  it("in every worker", async () => {
    await using gateway = await startDaemon({ yaml: `workers: 2\n${PROVIDERS}` });
    const secret = await keyWithBudget(gateway);
    const clients = await Promise.all([1, 2, 3, 4].map(() => dial(gateway.url, { key: secret })));
    await spend(gateway, secret);
    for (const client of clients) expect(await client.closed).toMatchObject({ code: 1008 });
    // So does the revocation of a key.
    const leaver = (await gateway.ask("keys.create", { name: "leaver" })) as { secret: string };
    const others = await Promise.all(
      [1, 2, 3].map(() => dial(gateway.url, { key: leaver.secret })),
    );
    await gateway.ask("keys.revoke", { id: "leaver" });
    for (const client of others) expect(await client.closed).toMatchObject({ code: 1008 });
  });
});
