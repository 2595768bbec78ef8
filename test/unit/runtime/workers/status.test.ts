// One status for several processes includes everything that a worker reports.
import { expect, it } from "vitest";
import { mergeStatus } from "../../../../src/runtime/workers/worker-protocol.ts";
import type { GatewayStatus, WorkerStatus } from "../../../../src/runtime/gateway-api.ts";

const primary = {
  generations: [{ generation: 1, inFlight: 0 }],
  quarantinedHooks: [],
  files: { stored: 0, files: 0, bytes: 0, served: 0, rejected: 0, expired: 0 },
} as unknown as GatewayStatus;
const worker = (more: object) =>
  ({
    generations: [],
    cooldowns: [],
    quarantinedHooks: [],
    unreachablePlugins: [],
    latencies: [],
    files: primary.files,
    ...more,
  }) as unknown as WorkerStatus;
const gone = (plugin: string, since: number) => ({
  plugin,
  since,
  reason: "it ended",
  retryAt: since + 100,
  requests: "rejected",
});

it("lists an unreachable plugin once, since the first worker lost it", () => {
  const workers = [
    worker({ unreachablePlugins: [gone("middleware.a", 20)] }),
    worker({ unreachablePlugins: [gone("middleware.a", 10), gone("middleware.b", 30)] }),
    worker({}),
  ];
  // The primary's own copy checks the config and serves no requests.
  const own = {
    ...primary,
    unreachablePlugins: [gone("middleware.c", 5)],
  } as unknown as GatewayStatus;
  expect(mergeStatus(own, workers).unreachablePlugins).toEqual([
    gone("middleware.a", 10),
    gone("middleware.b", 30),
  ]);
  expect(mergeStatus(own, undefined).unreachablePlugins).toEqual(own.unreachablePlugins);
});

it("lists everything that a worker reports", () => {
  const one: { readonly [list: string]: object } = {
    cooldowns: { target: "a", until: 1 },
    quarantinedHooks: { plugin: "a", hook: "inspect", until: 1 },
    unreachablePlugins: gone("a", 1),
    latencies: { target: "a", stream: true, calledAt: 1 },
  };
  const lists = Object.keys(worker({})).filter((name) => !["generations", "files"].includes(name));
  expect(lists).toEqual(Object.keys(one));
  for (const name of lists)
    expect(mergeStatus(primary, [worker({ [name]: [one[name]] })])).toMatchObject({
      [name]: [one[name]],
    });
});
