// A collector that hangs, rejects, and recovers: no request waits for it, the queue has its limit,
// lost spans are counted, and queued spans arrive at the latest when the gateway stops.
import { expect, it } from "vitest";
import { jsonResponse, startUpstream, type ScriptedResponse } from "tollgate/testing";
import { attributesOf, itemsOf } from "../../plugins/observers/decoded.ts";
import { askOnNewConnection } from "../../kit/process/daemon.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

interface State {
  readonly traces: { readonly sent: number; readonly dropped: number };
  readonly logs: { readonly sent: number; readonly dropped: number };
  readonly waiting: { readonly traces: number; readonly logs: number };
}

it("exports what the collector accepts, and no client waits for it", async () => {
  const gate = Promise.withResolvers<void>();
  const hanging = async (): Promise<ScriptedResponse> => {
    await gate.promise;
    return { status: 503, headers: { "retry-after": "0" }, body: "" };
  };
  await using collector = await startUpstream({ "POST /*": hanging });
  await using gateway = await startInProcess({
    yaml: `frontends: [chat-completions]
observers: [{ use: otlp, with: { signals: [traces, logs], queue_size: 20, batch_size: 5, batch_delay_ms: 10 } }]
providers: { demo: { use: demo } }
`,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-team=infra",
      OTEL_SERVICE_NAME: "front-door",
    },
  });
  const state = async () => (await gateway.ask("observers.otlp/state")) as unknown as State;
  const round = (many: number) =>
    Promise.all(Array.from({ length: many }, () => askOnNewConnection(gateway, "demo/echo")));
  // While it hangs, all requests are answered, and spans above the limit are lost.
  for (let n = 0; n < 3; n++) expect(new Set(await round(20))).toEqual(new Set([200]));
  let now = await state();
  await until(async () => (now = await state()).logs.dropped >= 30);
  expect([now.traces.sent, now.logs.sent]).toEqual([0, 0]);
  expect(now.waiting.traces).toBeLessThanOrEqual(20);
  expect(now.waiting.logs).toBeLessThanOrEqual(20);
  // It recovers: queued spans and new ones arrive.
  collector.setRoutes({ "POST /*": jsonResponse({}) });
  gate.resolve();
  await until(async () => (now = await state()).logs.sent >= 20);
  await round(5);
  await gateway.stop();
  const posts = collector.requests.filter(
    ({ path, body, bytesSent }) => path === "/v1/traces" && body.length > 0 && bytesSent > 0,
  );
  const lines = collector.requests.filter(({ path }) => path === "/v1/logs").flatMap(itemsOf);
  const ids = new Set(lines.map((line) => attributesOf(line)["tollgate.request.id"]));
  expect(posts.length).toBeGreaterThan(0);
  expect(ids.size).toBeGreaterThanOrEqual(25);
  for (const { headers } of collector.requests) expect(headers["x-team"]).toBe("infra");
  for (const msg of ["telemetry export failed", "telemetry export recovered"])
    expect(gateway.log.some((line) => line.msg === msg)).toBe(true);
});
