// A gateway that stops waits for its clients' requests, and for none of its own.
import { expect, it } from "vitest";
import { startUpstream } from "tollgate/testing";
import { startInProcess } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

it("cancels the query of a model list that hangs", async () => {
  const { promise: hangs } = Promise.withResolvers<never>();
  await using upstream = await startUpstream({ "*": () => hangs });
  await using gateway = await startInProcess({
    yaml: `
store: memory
providers:
  slow: { use: openai-compatible, with: { base_url: "${upstream.url}/v1" } }
`,
  });
  await until(
    () => upstream.requests.length > 0,
    () => "a query of the model list",
  );
  await gateway.stop();
  // The query was canceled before its deadline. A query that ends at its deadline is logged.
  expect(gateway.log.filter(({ msg }) => msg.startsWith("provider model list"))).toEqual([]);
});
