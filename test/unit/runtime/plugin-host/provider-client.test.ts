import { expect, it } from "vitest";
import { getFault } from "tollgate/plugin";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { createProviderClient } from "../../../../src/runtime/plugin-host/provider-client.ts";

it("sends exactly the given bytes, and not their buffer", async () => {
  await using up = await startUpstream({ "POST /*": jsonResponse({}) });
  const { fetch } = createProviderClient({
    reach: undefined,
    dispatcher: undefined,
    credential: { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined },
    signal: new AbortController().signal,
    allowedOrigins: new Set([up.url]),
  });
  const bytes = Buffer.from("before<the body>behind");
  const given = ["<the body>", bytes.subarray(6, 16), new Uint8Array(bytes).subarray(6, 16)];
  for (const body of given) await fetch(`${up.url}/x`, { method: "POST", body: body as Buffer });
  expect(up.requests.map(({ body }) => body.toString())).toEqual(given.map(() => "<the body>"));
});

it("distinguishes a request that was not sent from a connection that broke", async () => {
  const up = await startUpstream({ "*": { truncation: { after: "nothing", how: "reset" } } });
  const { fetch } = createProviderClient({
    reach: undefined,
    dispatcher: undefined,
    credential: { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined },
    signal: new AbortController().signal,
    allowedOrigins: new Set([up.url, up.url.replace("http:", "https:")]),
  });
  const codeOf = async (url: string) =>
    getFault(
      await fetch(url, { method: "POST", body: "{}" }).then(
        () => undefined,
        (error: unknown) => error,
      ),
    )?.code;
  expect(await codeOf(`${up.url}/x`)).toBe("upstream_disconnected");
  expect(up.requests.length).toBe(1);
  await up.close();
  expect(await codeOf(`${up.url}/x`)).toBe("connect_failed");
});

it("makes the target of a redirect absolute, as seen from the URL of the request", async () => {
  const targets = ["/files/1?a=b", "next", "../up", "//other.example/x", "https://other.example/y"];
  await using up = await startUpstream({
    "*": (request) => ({ status: 302, headers: { location: targets[request.number - 1]! } }),
  });
  const { fetch } = createProviderClient({
    reach: { base: `${up.url}/api/v1` },
    dispatcher: undefined,
    credential: { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined },
    signal: new AbortController().signal,
    allowedOrigins: new Set([up.url]),
  });
  const found: (string | null)[] = [];
  for (const _ of targets) found.push((await fetch("videos/7/content")).headers.get("location"));
  expect(found).toEqual([
    `${up.url}/files/1?a=b`,
    `${up.url}/api/v1/videos/7/next`,
    `${up.url}/api/v1/videos/up`,
    "http://other.example/x",
    "https://other.example/y",
  ]);
});
