import { expect, it } from "vitest";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { createProviderClient } from "../../../src/runtime/plugin-host/provider-client.ts";

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
