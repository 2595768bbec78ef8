// A stored response has the model name that the client knows, however large it is.
import { expect, it } from "vitest";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

it.each([1, 1_000, 200_000])("a response with %i values names the client's model", async (n) => {
  await using up = await startBackend((_req, res) => {
    const said = { model: "m-2026", all: [Array(Math.min(n, 40_000)).fill(0)] };
    while (said.all.length * 40_000 < n) said.all.push(said.all[0]!);
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(said));
  });
  const base = createToyProtocol();
  const paths = { ...base.client!.paths, kept: "/kept" };
  const frontend = { ...base, client: { ...base.client!, paths } };
  const endpoints = [{ protocol: frontend, base: up.base, auth: "none" as const }];
  await using s = await startTestServices({
    frontend,
    providers: { p: { endpoints, stateMode: "relay" } },
  });
  const got = await s.ask({ model: "p/m", text: "Hi" }, { path: "/toy/kept" });
  expect(((await got.json()) as { model: string }).model).toBe("p/m");
});
