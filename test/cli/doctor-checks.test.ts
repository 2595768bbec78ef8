// Checks of `tollgate doctor` by themselves: each is seen to find what is wrong, and to be content where nothing is.
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { disk, limits } from "../../src/cli/doctor/machine.ts";
import { origin, proxies } from "../../src/cli/doctor/network.ts";
import { folder } from "../kit/command-line.ts";

const told = (found: readonly { readonly id: string; readonly level: string }[]) =>
  found.map(({ id, level }) => `${id} ${level}`);

it("open files: as many as the bounds may want, and more than there are", async () => {
  const of = (most: number) =>
    limits({ bounds: { connections: most }, overload: { most } } as never).then(told);
  expect(await of(1)).toEqual(["limits/files fine"]);
  expect(await of(1e12)).toEqual(["limits/files warning"]);
});

it("the disk: room and a durable write; a folder that takes none is an error", async () => {
  await using here = await folder({});
  expect(await disk(join(here.path, "not/yet")).then(told)).toEqual([
    expect.stringMatching(/^disk\/free /),
    expect.stringMatching(/^disk\/fsync /),
  ]);
  // Nothing is written there, whichever user asks.
  expect(await disk("/proc").then(told)).toContain("disk/write error");
});

it("names: one that is not there is an error, one that is there is found", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const of = (url: string, proxied = false) => origin("p", new URL(url), proxied).then(told);
  expect(await of("http://nothing.invalid/v1")).toEqual(["providers.p/dns error"]);
  expect(await of("http://nothing.invalid/v1", true)).toEqual(["providers.p/dns note"]);
  const here = await of(`http://127.0.0.1:${port}/v1`);
  expect(here).toContain("providers.p/connect fine");
  const through = (url: string) => proxies({ proxy: { url } } as never, {}).then(told);
  expect(await through(`http://127.0.0.1:${port}`)).toEqual(["proxy fine"]);
  // A port that speaks no TLS.
  server.on("connection", (socket) => socket.destroy());
  expect(await of(`https://127.0.0.1:${port}/v1`)).toContain("providers.p/tls error");
  server.close();
  await once(server, "close");
  expect(await through(`http://127.0.0.1:${port}`)).toEqual(["proxy/unreachable error"]);
});

it("variables of a proxy that is not in gateway.yaml", async () => {
  const of = (env: NodeJS.ProcessEnv) => proxies({} as never, env).then(told);
  expect(await of({ HTTPS_PROXY: "http://p:1" })).toEqual(["proxy/unused warning"]);
  expect(await of({})).toEqual(["proxy fine"]);
});
