// Single checks of `tollgate doctor`: each finds its problem, and accepts a good state.
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { networkInterfaces } from "node:os";
import { expect, it } from "vitest";
import { checkPrices } from "../../../src/cli/doctor/gateway.ts";
import { checkDisk, checkLimits } from "../../../src/cli/doctor/system.ts";
import { checkOrigin, checkReachable, checkProxies } from "../../../src/cli/doctor/network.ts";
import { createTestFolder } from "../../kit/process/command-line.ts";

const told = (found: readonly { readonly id: string; readonly level: string }[]) =>
  found.map(({ id, level }) => `${id} ${level}`);

it("open files: reports if the bounds need more files than the limit allows", async () => {
  const of = (most: number) =>
    checkLimits({ bounds: { connections: most }, overload: { maxConcurrent: most } } as never).then(
      told,
    );
  expect(await of(1)).toEqual(["limits/files ok"]);
  expect(await of(1e12)).toEqual(["limits/files warning"]);
});

it("disk: checks free space and a durable write; a read-only directory is an error", async () => {
  await using here = await createTestFolder({});
  expect(await checkDisk(join(here.path, "not/yet")).then(told)).toEqual([
    expect.stringMatching(/^disk\/free /),
    expect.stringMatching(/^disk\/fsync /),
  ]);
  // No user can write there.
  expect(await checkDisk("/proc").then(told)).toContain("disk/write error");
});

it("DNS: an unknown name is an error, a known name is resolved", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const of = (url: string, proxied = false) => checkOrigin("p", new URL(url), proxied).then(told);
  expect(await of("http://nothing.invalid/v1")).toEqual(["providers.p/dns error"]);
  expect(await of("http://nothing.invalid/v1", true)).toEqual(["providers.p/dns note"]);
  const here = await of(`http://127.0.0.1:${port}/v1`);
  expect(here).toContain("providers.p/connect ok");
  const through = (url: string) => checkProxies({ proxy: { url } } as never, {}).then(told);
  expect(await through(`http://127.0.0.1:${port}`)).toEqual(["proxy ok"]);
  // A port without TLS.
  server.on("connection", (socket) => socket.destroy());
  expect(await of(`https://127.0.0.1:${port}/v1`)).toContain("providers.p/tls error");
  server.close();
  await once(server, "close");
  expect(await through(`http://127.0.0.1:${port}`)).toEqual(["proxy/unreachable error"]);
});

it("reports proxy variables that gateway.yaml does not use", async () => {
  const of = (env: NodeJS.ProcessEnv) => checkProxies({} as never, env).then(told);
  expect(await of({ HTTPS_PROXY: "http://p:1" })).toEqual(["proxy/unused warning"]);
  expect(await of({})).toEqual(["proxy ok"]);
});

it("prices: a requested model without a price is a warning, any other is a note", async () => {
  const models = [{ id: "up/dear", price: {} }, { id: "up/free-of-facts" }];
  const made = { commands: { "models.list": async () => ({ models }) } };
  const of = (...candidates: readonly string[]) =>
    checkPrices({ models: new Map([["big", { candidates }]]) } as never, made as never);
  const rest = "prices/listed note";
  expect(told(await of("up/dear"))).toEqual(["prices/names ok", rest]);
  const found = await of("up/dear", "up/free-of-facts");
  expect(told(found)).toEqual(["prices/names warning", rest]);
  expect(found[0]!.message).toContain("1 model under models: without a price: up/free-of-facts");
});

it("port: tests whether other machines can reach it, and what else responds there", async (test) => {
  const others = Object.values(networkInterfaces())
    .flat()
    .filter((one) => one?.internal === false && one.family === "IPv4");
  if (others.length === 0) return test.skip("this machine has no address but loopback");
  const server = createServer((socket) => socket.destroy()).listen(0, "0.0.0.0");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const of = async (host: string) =>
    new Set(told(await checkReachable({ listen: [{ host, port, tls: {} }] } as never, true)));
  expect(await of("0.0.0.0")).toEqual(new Set(["listen/reached ok"]));
  expect(await of("127.0.0.1")).toEqual(new Set(["listen/loopback ok", "listen/shadowed warning"]));
  server.close();
  await once(server, "close");
  expect(await of("0.0.0.0")).toEqual(new Set(["listen/unreached warning"]));
});
