// Requests through an isolated plugin are young objects when they end. Retaining one slightly too
// long promotes it with everything it refers to, which costs more than the call.
import { duplexPair } from "node:stream";
import { GCProfiler } from "node:v8";
import { expect, it } from "vitest";
import { createIsolatedHooks, type SentRequest } from "../../../src/isolation/isolated-hooks.ts";
import { PluginProcess } from "../../../src/isolation/inside/plugin-process.ts";
import { PluginConnection } from "../../../src/isolation/plugin-connection.ts";
import { EventStreams } from "../../../src/isolation/event-streams.ts";
import { KnownRequests } from "../../../src/isolation/known-requests.ts";
import type { Exchange } from "../../../src/plugin/exchange.ts";
import { call, exchange } from "../../../src/testing/fakes.ts";
import { until } from "../../kit/wait.ts";

const REQUESTS = 20_000;
/** Data of each on the gateway's side, in numbers of eight bytes. */
const NUMBERS = 500;

it("a completed request is released immediately, on both sides", async () => {
  const [here, there] = duplexPair();
  new PluginProcess(async () => ({ setup: () => ({ inspect() {} }) })).serve(there);
  const link = new PluginConnection({ stream: here, handlers: {}, onNotify() {}, onClose() {} });
  await link.call("setup", { id: "middleware.looks", options: {} });
  const told = new KnownRequests<SentRequest>();
  const of = {
    connection: () => link,
    streams: new EventStreams(),
    requests: told,
    confirmsRequestEnd: true,
  };
  const hooks = createIsolatedHooks(of, ["inspect"]);
  const pretended = exchange({});
  let count = 0;
  class Weighty {
    id = `request-${++count}`;
    weight = Array.from({ length: NUMBERS }, () => count);
  }
  Object.setPrototypeOf(Weighty.prototype, pretended);
  const one = async () => {
    const x = new Weighty() as unknown as Exchange;
    await hooks.inspect!(pretended.request, x);
    await hooks.settle!(x, undefined as never);
  };
  const round = async (requests: number) => {
    for (let i = 0; i < requests; i += 8) await Promise.all(Array.from({ length: 8 }, one));
  };
  // Until code and object shapes are stable.
  await round(20_000);
  const profiler = new GCProfiler();
  profiler.start();
  await round(REQUESTS);
  const { statistics } = profiler.stop();
  const old = (at: (typeof statistics)[number]["afterGC"]) =>
    at.heapSpaceStatistics.find(({ spaceName }) => spaceName === "old_space")!.spaceUsedSize;
  const aged = statistics
    .filter(({ gcType }) => gcType === "Scavenge")
    .reduce((sum, { beforeGC, afterGC }) => sum + old(afterGC) - old(beforeGC), 0);
  expect(aged / REQUESTS).toBeLessThan(500);
});

it.each([
  { what: "a child, when it says that it has heard of the end", echoes: true, knows: 1 },
  { what: "another one, which need not say so, at the end", echoes: false, knows: 0 },
])("a request with watching hooks only is released: $what", async ({ echoes, knows }) => {
  const [here, there] = duplexPair();
  new PluginProcess(async () => ({ setup: () => ({ watch: () => () => {} }) })).serve(there);
  const told = new KnownRequests<SentRequest>();
  const heard = (name: string, given: unknown) =>
    void (name === "request_end" && told.remove((given as { exchange: string }).exchange));
  const link = new PluginConnection({ stream: here, handlers: {}, onNotify: heard, onClose() {} });
  await link.call("setup", { id: "middleware.looks", options: {} });
  const of = {
    connection: () => link,
    streams: new EventStreams(),
    requests: told,
    confirmsRequestEnd: echoes,
  };
  const hooks = createIsolatedHooks(of, ["watch"]);
  const pretended = call();
  hooks.watch!(pretended, () => {})({ type: "finish", reason: "stop" } as never);
  await hooks.settle!(pretended.exchange, undefined as never);
  expect(told.values()).toHaveLength(knows);
  await until(() => told.values().length === 0);
});
