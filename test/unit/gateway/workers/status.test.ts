// One status for several processes: nothing that a worker reports is missing from it.
import { expect, it } from "vitest";
import { mergeStatus } from "../../../../src/runtime/workers/merge-status.ts";
import type { GatewayStatus, WorkerStatus } from "../../../../src/runtime/gateway-api.ts";

const primary = {
  generations: [{ generation: 1, inFlight: 0 }],
  quarantined: [],
  files: { kept: 0, files: 0, bytes: 0, served: 0, refused: 0, swept: 0 },
} as unknown as GatewayStatus;
const worker = (more: object) =>
  ({
    generations: [],
    resting: [],
    quarantined: [],
    unreachable: [],
    latencies: [],
    files: primary.files,
    ...more,
  }) as unknown as WorkerStatus;
const gone = (plugin: string, since: number) => ({
  plugin,
  since,
  why: "it ended",
  retryAt: since + 100,
  requests: "rejected",
});

it("has a plugin that workers cannot reach once, since the first of them lost it", () => {
  const workers = [
    worker({ unreachable: [gone("middleware.a", 20)] }),
    worker({ unreachable: [gone("middleware.a", 10), gone("middleware.b", 30)] }),
    worker({}),
  ];
  // The copy of the primary checks the config and serves no request.
  const own = { ...primary, unreachable: [gone("middleware.c", 5)] } as unknown as GatewayStatus;
  expect(mergeStatus(own, workers).unreachablePlugins).toEqual([
    gone("middleware.a", 10),
    gone("middleware.b", 30),
  ]);
  expect(mergeStatus(own, undefined).unreachablePlugins).toEqual(own.unreachablePlugins);
});

it("has each list that a worker reports", () => {
  const one: { readonly [list: string]: object } = {
    resting: { what: "a", until: 1 },
    quarantined: { plugin: "a", hook: "inspect", until: 1 },
    unreachable: gone("a", 1),
    latencies: { what: "a", stream: true, askedAt: 1 },
  };
  const lists = Object.keys(worker({})).filter((name) => !["generations", "files"].includes(name));
  expect(lists).toEqual(Object.keys(one));
  for (const name of lists)
    expect(mergeStatus(primary, [worker({ [name]: [one[name]] })])).toMatchObject({
      [name]: [one[name]],
    });
});
