import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { fail, getFault, type ProviderClient } from "tollgate/plugin";
import { listSourcesOf } from "../../../src/runtime/generation/list-sources.ts";
import { ConnectionPools } from "../../../src/runtime/plugin-host/connection-pools.ts";

const servers: Server[] = [];
const pools = new ConnectionPools();
afterAll(async () => {
  servers.forEach((server) => server.close().closeAllConnections());
  await pools[Symbol.asyncDispose]();
});

/** The source of a provider whose list is the text at /v1/models. */
async function line(listener: RequestListener) {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const endpoint = { base: `${origin}/v1`, auth: { header: "x-key", field: "api_key" } };
  const models = async (line: ProviderClient) => {
    const answer = await line.fetch("models");
    return answer.ok
      ? ((await answer.json()) as never)
      : fail("upstream", `It answered ${answer.status}.`);
  };
  const mounted = {
    name: "p",
    plugin: { listModels: models },
    endpoints: [{ definition: endpoint, nativePool: pools.acquire(origin, 1_000).pool }],
    credentials: [{ name: "main", fields: { api_key: "s" }, weight: 1 }],
  };
  const [only] = listSourcesOf({ providers: new Map([["p", mounted as never]]) });
  return only!;
}

describe("a live list", () => {
  it("is requested conditionally, with its credential, until its signal ends", async () => {
    const seen: (string | undefined)[] = [];
    const asked = await line((req, res) => {
      expect([req.url, req.headers["x-key"]]).toEqual(["/v1/models", "s"]);
      seen.push(req.headers["if-none-match"]);
      if (seen.length < 4 && req.headers["if-none-match"] === '"1"') res.writeHead(304).end();
      else if (seen.length === 5) res.flushHeaders();
      else res.writeHead(200, { etag: '"1"' }).end('[{"model":"a"}]');
    });
    for (let i = 0; i < 4; i++)
      expect(await asked.fetchModels(AbortSignal.timeout(5_000))).toEqual([{ model: "a" }]);
    expect(seen).toEqual([undefined, '"1"', '"1"', '"1"']);
    await expect(asked.fetchModels(AbortSignal.timeout(50))).rejects.toThrowError(/canceled/);
    expect(await asked.fetchModels(AbortSignal.timeout(5_000))).toEqual([{ model: "a" }]);
  });

  it("reports a truncated response", async () => {
    const asked = await line((_, res) => {
      res.writeHead(200, { "content-length": 100 }).write("[");
      setTimeout(() => res.destroy(), 20);
    });
    const problem = await asked.fetchModels(AbortSignal.timeout(5_000)).catch((error) => error);
    expect(getFault(problem)).toMatchObject({ code: "truncated" });
  });

  it("is rejected during the transfer if it is too large", async () => {
    let sent = 0;
    const asked = await line((_, res) => {
      const more = (): void => {
        while (!res.destroyed && res.write(Buffer.alloc(65_536))) sent += 65_536;
        res.once("drain", more);
      };
      more();
    });
    await expect(asked.fetchModels(AbortSignal.timeout(20_000))).rejects.toThrowError(
      /larger than/,
    );
    expect(sent).toBeLessThan(40_000_000);
  });
});
